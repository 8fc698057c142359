"""Who shares the fault of an excess, in words."""

from headgate.quota.usage.contention import Shared
from headgate.report.screen import counted, plain

SHOWN_SHARERS = 3


def listed(shared: Shared) -> str:
    """Names with their parts of the excess: `a 60%, b 30% and 2 more tenants`."""
    sharers = shared.sharers
    shown = [f"{plain(name)} {shared.part(name):.0%}" for name in sharers[:SHOWN_SHARERS]]
    if more := len(sharers[SHOWN_SHARERS:]):
        return f"{', '.join(shown)} and {counted(more, 'more')}"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
