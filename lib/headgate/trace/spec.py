"""What a trace is made of: one frozen, closed, checked value."""

import math
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from headgate.errors import ConfError

DEFAULT_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
EARLIEST_START = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_START = datetime(2100, 1, 1, tzinfo=UTC)
MOST_SPECIAL_SHARE = 0.95  # some steady traffic must remain, or there is nobody to be disturbed
MOST_SWINGS = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _number(default: float, low: float, high: float, about: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "about": about})


@dataclass(frozen=True, kw_only=True)
class TraceSpec:
    """Everything that decides a trace's rows. Equal specs give equal rows; `files` only decides where they are cut.

    Raises ConfError with all mistakes at once. The defaults are two minutes of three brokers and five tenants, the last
    of which (`hooli`) floods its topic `hooli/ads/clicks`.
    """

    seed: int = _number(7, 0, 2**63 - 1, "seed of all draws")
    events: int = _number(60_000, 1, 1_000_000_000, "events, bad rows included")
    duration_s: float = _number(120.0, 1.0, 31_622_400.0, "event time from first to last event, s")
    start: datetime = field(
        default=DEFAULT_START, metadata={"about": "event time of the beginning, ISO 8601 with zone"}
    )
    brokers: int = _number(3, 1, 1_000, "brokers")
    tenants: int = _number(5, 1, 10_000, "tenants; the last one is the noisy neighbour")
    namespaces_per_tenant: int = _number(3, 1, 1_000, "namespaces of each tenant")
    topics: int = _number(60, 1, 1_000_000, "topics in all")
    zipf: float = _number(1.1, 0.0, 5.0, "exponent of topic popularity; 0 makes all topics equal")
    producers_per_topic: int = _number(2, 1, 1_000, "most producers of one topic; each topic has 1 to this many")
    topics_per_connection: int = _number(
        2, 1, 1_000, "topics that one connection of a tenant to a broker serves, about"
    )
    noisy_share: float = _number(0.25, 0.0, MOST_SPECIAL_SHARE, "share of all events sent by the floods; 0: no floods")
    floods: int = _number(2, 1, 10_000, "floods, spread evenly")
    flood_fraction: float = _number(0.3, 0.01, 1.0, "fraction of the time during which the noisy neighbour floods")
    burst_share: float = _number(0.06, 0.0, MOST_SPECIAL_SHARE, "share of all events sent in bursts; 0: no bursts")
    bursts: int = _number(12, 1, 100_000, "bursts, each of one other topic at a drawn time")
    burst_ms: int = _number(500, 1, 3_600_000, "length of a burst, ms")
    moves: int = _number(
        0, 0, 10_000, "how often the most popular topic of the second tenant goes to the next broker, evenly spread"
    )
    swing: float = _number(0.5, 0.0, 0.95, "diurnal swing of the steady traffic around its mean, as a fraction")
    swing_period_s: float = _number(120.0, 1.0, 31_622_400.0, "length of a day in the trace, s; a real one has 86400")
    batch_mean: float = _number(4.0, 1.0, 1_000.0, "mean messages per publish")
    message_bytes: int = _number(600, 1, 5_242_880, "median size of a message, bytes")
    dispatch_share: float = _number(0.0, 0.0, 1.0, "share of all events that are dispatches in place of publishes")
    subscriptions_per_topic: int = _number(2, 1, 1_000, "subscriptions of each topic, all equally likely")
    subscribe_share: float = _number(0.0, 0.0, 1.0, "share of all events that are subscribes in place of publishes")
    connection_share: float = _number(
        0.0, 0.0, 1.0, "share of all events that are what connections do, in place of publishes"
    )
    consumers_per_topic: int = _number(3, 1, 1_000, "consumers of each topic, all equally likely to subscribe")
    unload_share: float = _number(
        0.0, 0.0, 1.0, "share of all events that are unloads of topics' bundles in place of publishes"
    )
    files: int = _number(12, 1, 100_000, "files, in event-time order")
    bad_share: float = _number(0.0, 0.0, 0.5, "share of rows that are spoiled on purpose")
    disorder_ms: int = _number(0, 0, 600_000, "longest delay of a row behind later ones, ms; 0: in order")

    def __post_init__(self) -> None:
        mistakes = [mistake for spec_field in fields(self) for mistake in self._field_mistakes(spec_field.name)]
        if not mistakes:
            mistakes = self._joint_mistakes()
        if mistakes:
            raise ConfError(mistakes)

    @property
    def start_us(self) -> int:
        """Microseconds since 1970 of the beginning."""
        since = self.start - EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    @property
    def duration_us(self) -> int:
        return round(self.duration_s * 1_000_000)

    @property
    def rate_per_s(self) -> float:
        """Mean publishes per second of event time."""
        return self.events / self.duration_s

    def _field_mistakes(self, name: str) -> list[str]:
        if name == "start":
            return self._start_mistakes()
        metadata = next(spec_field.metadata for spec_field in fields(self) if spec_field.name == name)
        value, low, high = getattr(self, name), metadata["low"], metadata["high"]
        whole = isinstance(getattr(type(self), name), int)
        right_type = isinstance(value, int) if whole else isinstance(value, int | float) and math.isfinite(value)
        if isinstance(value, bool) or not right_type or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            return [f"{name}: got {value!r}, allowed {kind} from {low} to {high} ({metadata['about']})"]
        return []

    def _start_mistakes(self) -> list[str]:
        start: object = self.start
        allowed = f"a time with zone from {EARLIEST_START.isoformat()} to {LATEST_START.isoformat()}"
        if not isinstance(start, datetime) or start.tzinfo is None or not EARLIEST_START <= start <= LATEST_START:
            got = start.isoformat() if isinstance(start, datetime) else repr(start)
            return [f"start: got {got}, allowed {allowed}"]
        return []

    def _joint_mistakes(self) -> list[str]:
        """What no single field shows. Only called when every field is in its own range."""
        mistakes = []
        if self.files > self.events:
            mistakes.append(f"files: got {self.files}, allowed at most one per event, {self.events}")
        names = ("dispatch_share", "subscribe_share", "unload_share", "connection_share")
        other_kinds = sum(getattr(self, name) for name in names)
        if other_kinds > 1:
            mistakes.append(f"{' + '.join(names)}: got {other_kinds:g}, allowed at most 1 together")
        special = self.noisy_share + self.burst_share
        if special > MOST_SPECIAL_SHARE:
            mistakes.append(
                f"noisy_share + burst_share: got {special:g}, allowed at most {MOST_SPECIAL_SHARE} together"
            )
        if self.burst_share > 0 and self.bursts * self.burst_ms * 1_000 > self.duration_us:
            mistakes.append(
                f"bursts x burst_ms: got {self.bursts} x {self.burst_ms} ms, allowed at most duration_s, "
                f"{self.duration_s:g} s, in all; use fewer or shorter bursts, or burst_share 0"
            )
        if self.swing > 0 and self.duration_s / self.swing_period_s > MOST_SWINGS:
            mistakes.append(
                f"swing_period_s: got {self.swing_period_s:g}, allowed at least duration_s / {MOST_SWINGS}, "
                f"{self.duration_s / MOST_SWINGS:g} s"
            )
        return mistakes
