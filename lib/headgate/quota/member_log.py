"""Who shares the quotas, for the log of a job of one broker: at its start, at each change, and who never used any.

A name that is a slip joins as any other does, and a job with another --output finds nobody: only a line tells.
"""

import difflib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.quota.tables.rg_members import MemberRow, MemberState

LOG = logging.getLogger(__name__)

UNUSED_AFTER_MS = 60_000
"""So long after this job first saw it a member without any traffic of a group is named."""
SHOWN_NAMES = 20


class MemberLog:
    """One line whenever who is up changes, and one for each life that is without any traffic of a group for a minute.

    own: the broker that the job is for.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._up: Mapping[str, int] | None = None
        self._unused_since_ms: dict[tuple[str, int], int] = {}
        self._named: set[tuple[str, int]] = set()

    def take(
        self,
        listed: Mapping[int, MemberRow],
        members: Mapping[int, BrokerUsage],
        in_input: Collection[str],
        wall_ms: int,
    ) -> None:
        """Say what is new. listed: rg_members. members: what was heard of those that are up. in_input: broker names."""
        up = {row.name: row.incarnation for row in listed.values() if row.state == MemberState.UP}
        if up != self._up:
            changes = [] if self._up is None else list(self._changes(self._up, up, listed.values()))
            LOG.warning("%s", "; ".join([*changes, self._who(up)]))
            self._up = up
        for name, unused_ms in self._unused(listed, members, wall_ms):
            LOG.warning("%s", self._unused_line(name, unused_ms // 1000, sorted(in_input)))

    def _who(self, up: Collection[str]) -> str:
        if set(up) == {self._own}:
            return (
                f"quotas are shared by 1 member, {self._own} (this job), which has all of them until jobs of other "
                "brokers join: they need the same --output"
            )
        names = [f"{name} (this job)" if name == self._own else name for name in sorted(up)]
        return f"quotas are shared by {len(up)} members: {_listed(names)}"

    @staticmethod
    def _changes(before: Mapping[str, int], up: Mapping[str, int], listed: Iterable[MemberRow]) -> Iterator[str]:
        states = {row.name: row.state for row in listed}
        for name in sorted(up.keys() - before.keys()):
            yield f"{name} has joined"
        for name in sorted(name for name in up if before.get(name, up[name]) != up[name]):
            yield f"{name} has started anew"
        for name in sorted(before.keys() - up.keys()):
            yield f"{name} has left" if states.get(name) == MemberState.LEFT else f"{name} is lost"

    def _unused(
        self, listed: Mapping[int, MemberRow], members: Mapping[int, BrokerUsage], wall_ms: int
    ) -> Iterator[tuple[str, int]]:
        """Members that were not named yet in this life, and for how long they have been up without any traffic."""
        unused = [(listed[id_].name, one.incarnation) for id_, one in members.items() if not one.histories]
        self._unused_since_ms = {life: self._unused_since_ms.get(life, wall_ms) for life in unused}
        for life, since_ms in self._unused_since_ms.items():
            if wall_ms - since_ms >= UNUSED_AFTER_MS and life not in self._named:
                self._named.add(life)
                yield life[0], wall_ms - since_ms

    def _unused_line(self, name: str, unused_s: int, in_input: list[str]) -> str:
        who = f"{name} (this job)" if name == self._own else name
        line = f"{who} is a member and has reported no traffic of any group in {unused_s} s"
        if not in_input or name in in_input:
            return line
        near = difflib.get_close_matches(name, in_input, n=1)
        remedy = f"--broker {near[0]}" if near else "the --broker that is meant"
        return (
            f"{line}; the brokers in this job's input are {_listed(in_input)}. If {name} is a slip, stop its job and "
            f"start it with {remedy}"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{', '.join(names[:SHOWN_NAMES])}{more}"
