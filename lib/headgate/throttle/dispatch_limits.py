"""Dispatch limits of the conf files as flat rows, which a job writes into its ordered stream."""

from dataclasses import dataclass

from headgate.conf import Conf
from headgate.conf.limits import RATE_MAX


@dataclass(frozen=True, slots=True)
class DispatchLimitRow:
    """The dispatch limit of one scope; rates are whole numbers from 0. Of a group 0 blocks, and None is off."""

    scope: str
    name: str
    messages_per_s: int | None
    bytes_per_s: int | None


def dispatch_limits(conf: Conf) -> list[DispatchLimitRow]:
    """Return a row for each group, by name, with the quota of the whole cluster."""
    rows = []
    for name, group in sorted(conf.resource_groups.groups.items()):
        rates = (group.dispatch_messages_per_s, group.dispatch_bytes_per_s)
        rows.append(DispatchLimitRow("group", name, *(None if rate is None else min(rate, RATE_MAX) for rate in rates)))
    return rows
