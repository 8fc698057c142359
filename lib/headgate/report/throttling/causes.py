"""Why somebody was held though nobody exceeded a fair share, or would be held anyway, in words."""

from typing import NamedTuple

from headgate.quota.usage.contention import Reason, Within
from headgate.report.screen import plain

NOBODYS = "nobody's fault"


_MOST_LET_THROUGH = 0.9
"""Limits of topics that let through more than that are not worth a word."""


class Cause(NamedTuple):
    """At length, and beside other times."""

    words: str
    briefly: str


_BACKLOG = Cause(
    f"{NOBODYS}: it fits into the rate, but a backlog came at once that another limiter had held",
    f"{NOBODYS} (a backlog that another limiter had held)",
)
_SHARES = Cause(
    f"{NOBODYS}: it fits into the quota, but not into the shares of brokers, which follow the load from batch to "
    "batch; what waits clears at the quota's spare rate",
    f"{NOBODYS} (it fits into the quota, but not into the shares of brokers, which follow the load)",
)


_BLOCKED = Cause(f"{NOBODYS}: a quota of 0 blocks all", f"{NOBODYS} (a quota of 0 blocks all)")
_CAUSES = {Reason.BACKLOG: _BACKLOG, Reason.SHARES: _SHARES, Reason.BLOCKED: _BLOCKED}


def cause_of(within: Within) -> Cause:
    """In words."""
    if within.reason in _CAUSES:
        return _CAUSES[within.reason]
    of = "" if within.most is None else f", most of it from {plain(within.most)}"
    words = f"somewhat more than the rate came{of}"
    return Cause(f"{NOBODYS}: {words}, and fits into what a second saves up of the rate", f"{NOBODYS} ({words})")


def let_through(part: float) -> str:
    """That limits of somebody's topics hold some of it, behind other words; empty if that is little."""
    return "; what limits of its topics hold back does not count" if part <= _MOST_LET_THROUGH else ""
