"""How traffic is spread over a trace's time: steady with a diurnal swing, floods of the noisy neighbour, bursts."""

from dataclasses import dataclass

import numpy as np

from headgate.trace.draws import Floats, Longs, uniforms
from headgate.trace.spec import TraceSpec

BURST_STREAM = 1
STEPS_PER_SWING = 64
STEADY = -1


@dataclass(frozen=True)
class Load:
    """The trace's time cut into segments of constant rate.

    `cumulative` is the share of all events before each edge. Within segment i, an event belongs to the flood with
    probability noisy[i], to burst_topic[i]'s burst with bursting[i], else to the steady traffic.
    """

    edges_us: Longs
    cumulative: Floats
    noisy: Floats
    bursting: Floats
    burst_topic: Longs

    def locate(self, quantile: Floats) -> tuple[Longs, Longs]:
        """Segment and time (us from the beginning) of each quantile in [0, 1]; times fall only where quantiles do."""
        last = len(self.edges_us) - 2
        segment = np.clip(np.searchsorted(self.cumulative, quantile, side="right") - 1, 0, last)
        begin, end = self.edges_us[segment], self.edges_us[segment + 1]
        low, high = self.cumulative[segment], self.cumulative[segment + 1]
        fraction = (quantile - low) / (high - low)
        return segment, np.minimum(begin + (fraction * (end - begin)).astype(np.int64), end - 1)


def build_load(spec: TraceSpec, noisy_topic: int) -> Load:
    """The load of `spec`. Floods lie in the middle of equal parts of its time, bursts at drawn places of theirs."""
    floods = _flood_windows(spec)
    bursts, topics = _drawn_bursts(spec, noisy_topic)
    edges = np.unique(np.concatenate([_swing_steps(spec), floods.ravel(), bursts.ravel()]))
    flood_mass = spec.noisy_share * np.diff(_share_inside(edges, floods))
    burst_mass = spec.burst_share * np.diff(_share_inside(edges, bursts))
    steady_mass = (1 - spec.noisy_share - spec.burst_share) * np.diff(_steady_share(edges, spec))
    mass = steady_mass + flood_mass + burst_mass
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    burst = np.searchsorted(bursts[:, 0], edges[:-1], side="right") - 1
    topic = np.where(burst_mass > 0, topics[burst], STEADY) if len(topics) else np.full(len(mass), STEADY)
    return Load(edges, cumulative / cumulative[-1], flood_mass / mass, burst_mass / mass, topic)


def _flood_windows(spec: TraceSpec) -> Longs:
    """(floods, 2) begins and ends, us."""
    if spec.noisy_share == 0:
        return np.empty((0, 2), np.int64)
    part = spec.duration_us / spec.floods
    begins = (np.arange(spec.floods) + (1 - spec.flood_fraction) / 2) * part
    return np.stack([begins, begins + part * spec.flood_fraction], axis=1).astype(np.int64)


def _drawn_bursts(spec: TraceSpec, noisy_topic: int) -> tuple[Longs, Longs]:
    """(bursts, 2) begins and ends, us, and each burst's topic: any but the noisy one, all equally likely."""
    if spec.burst_share == 0:
        return np.empty((0, 2), np.int64), np.empty(0, np.int64)
    place, choice = uniforms(spec.seed, BURST_STREAM, 0, 2, spec.bursts)
    length = spec.burst_ms * 1_000
    part = spec.duration_us / spec.bursts
    begins = (np.arange(spec.bursts) * part + place * (part - length)).astype(np.int64)
    topic = (choice * max(1, spec.topics - 1)).astype(np.int64)
    topic += (topic >= noisy_topic) & (spec.topics > 1)
    return np.stack([begins, begins + length], axis=1), topic


def _swing_steps(spec: TraceSpec) -> Longs:
    """Edges between which the swinging rate counts as constant."""
    swings = spec.duration_s / spec.swing_period_s if spec.swing > 0 else 0
    return np.linspace(0, spec.duration_us, int(np.ceil(swings * STEPS_PER_SWING)) + 2).astype(np.int64)


def _steady_share(edges_us: Longs, spec: TraceSpec) -> Floats:
    """Share of the steady traffic before each edge. The rate begins at its lowest: 1 - swing * cos(2 pi t / period)."""
    day = 2 * np.pi / (spec.swing_period_s * 1_000_000)
    integral = edges_us - spec.swing * np.sin(edges_us * day) / day
    return np.asarray(integral / integral[-1], np.float64)


def _share_inside(edges_us: Longs, windows: Longs) -> Floats:
    """Share of the windows' total length before each edge; all 0 without windows."""
    if len(windows) == 0:
        return np.zeros(len(edges_us))
    lengths = windows[:, 1] - windows[:, 0]
    after = np.cumsum(lengths)
    inside = np.stack([after - lengths, after], axis=1).ravel()
    return np.asarray(np.interp(edges_us, windows.ravel(), inside) / after[-1], np.float64)
