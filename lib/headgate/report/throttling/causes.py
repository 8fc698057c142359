"""Why somebody was held though nobody exceeded a fair share, in words."""

from typing import NamedTuple

from headgate.quota.usage.contention import Reason, Within
from headgate.report.screen import plain

NOBODYS = "nobody's fault"


class Cause(NamedTuple):
    """At length, and beside other times."""

    words: str
    briefly: str


_BACKLOG = Cause(
    f"{NOBODYS}: it fits into the rate, but a backlog came at once that another limiter had held",
    f"{NOBODYS} (a backlog that another limiter had held)",
)
_SHARES = Cause(
    f"{NOBODYS}: it fits into the quota, but the shares of brokers followed the load late; what waited by then clears "
    "at the quota's spare rate",
    f"{NOBODYS} (shares followed the load late, and what waited by then clears)",
)


def cause_of(within: Within) -> Cause:
    """In words."""
    if within.reason is Reason.BACKLOG:
        return _BACKLOG
    if within.reason is Reason.SHARES:
        return _SHARES
    of = "" if within.most is None else f", most of it from {plain(within.most)}"
    words = "it fits into the rate and what was saved up of it in a second, but came in a burst"
    return Cause(f"{NOBODYS}: {words}{of}", f"{NOBODYS} (a burst{of})")
