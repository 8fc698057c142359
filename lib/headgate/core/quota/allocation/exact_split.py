"""The exact max-min split that limits are judged by (resource-groups 12.2)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """x*, exact: the part of each broker is `parts[i] / scale` a second."""

    parts: tuple[int, ...]
    scale: int

    @property
    def total(self) -> int:
        """The sum of the parts, in the same scale."""
        return sum(self.parts)


def exact_split(quota: int | None, demand: Sequence[int], weights: Sequence[int], up: Sequence[bool]) -> Split:
    """The real-valued weighted max-min of `demand` under `quota`, over the brokers that are up; 0 for the others.

    Without a quota everybody gets what it asks for. Source: resource-groups 12.2.
    """
    wanted = [amount if running else 0 for amount, running in zip(demand, up, strict=True)]
    if quota is None or sum(wanted) <= quota:
        return Split(tuple(wanted), 1)
    unmet = [broker for broker, running in enumerate(up) if running]
    rest, scale = quota, sum(weights[broker] for broker in unmet)
    while met := {broker for broker in unmet if wanted[broker] * scale <= rest * weights[broker]}:
        rest -= sum(wanted[broker] for broker in met)
        scale -= sum(weights[broker] for broker in met)
        unmet = [broker for broker in unmet if broker not in met]
    parts = [amount * scale for amount in wanted]
    for broker in unmet:
        parts[broker] = rest * weights[broker]
    return Split(tuple(parts), scale)
