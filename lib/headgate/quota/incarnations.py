"""The lives of this loop's brokers: begun in rg_members before the first usage row, begun anew when they were lost."""

import logging
from collections.abc import Iterable, Iterator, Mapping

from headgate.core.quota.groups import INT32_MAX, initial_shard
from headgate.core.quota.settings import MembershipSource, QuotaSettings
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.own_broker import OwnBroker
from headgate.quota.tables.rg_members import MemberRow, MemberState, MemberTable
from headgate.quota.tables.usage_rows import Sender

LOG = logging.getLogger(__name__)


class Incarnations:
    """A life begins when nothing of an earlier one is still to be sent, and its incarnation is newer than all before.

    listed: the table of members is used. Without it a broker's id is a hash of its name, the same in every job.
    """

    def __init__(self, members: MemberTable, settings: QuotaSettings, degraded: Degraded, *, transport: bool) -> None:
        self._members = members
        self._weight = settings.broker_weight
        self._degraded = degraded
        self.listed = transport and settings.membership is MembershipSource.TABLE

    def begin(self, brokers: Iterable[OwnBroker], wall_ms: int) -> None:
        """Begin a life of each of these; where the table cannot be written none begins, and the next call tries."""
        waiting = [broker for broker in brokers if broker.sender is None]
        if not waiting:
            return
        if not self.listed:
            for broker in waiting:
                broker.begin(Sender(id_of(broker.name), max(wall_ms, broker.incarnation + 1), self._weight))
            return
        with self._degraded.attempt(Cause.MEMBERS):
            joined = self._members.join({broker.name: self._weight for broker in waiting}, wall_ms)
            for broker in waiting:
                row = joined[broker.name]
                broker.begin(Sender(row.broker_id, row.incarnation, row.weight))

    def end_lost(self, brokers: Iterable[OwnBroker], listed: Mapping[int, MemberRow]) -> bool:
        """End the lives that the table does not list as up any more; whether there are any: they are to begin anew.

        A broker of which a newer life is up runs somewhere else as well; it is left to that one and told.
        """
        ended, elsewhere = False, []
        for broker, row in self._in_table(brokers, listed):
            if row.incarnation != broker.incarnation:
                elsewhere.append(broker.name)
            elif row.state != MemberState.UP:
                LOG.warning("broker %s was marked %s while it ran; it joins again", broker.name, row.state)
                broker.end()
                ended = True
        if elsewhere:
            others = ", ".join(elsewhere)
            self._degraded.begin(Cause.SUPERSEDED, f"another job runs as {others}; stop one of both")
        else:
            self._degraded.end(Cause.SUPERSEDED)
        return ended

    def leave(self, brokers: Iterable[OwnBroker]) -> None:
        """They shut down."""
        lives = {broker.sender.broker_id: broker.incarnation for broker in brokers if broker.sender is not None}
        if self.listed and lives:
            with self._degraded.attempt(Cause.MEMBERS):
                self._members.leave(lives)

    def lose(self, lives: Mapping[int, int]) -> None:
        """These brokers of other jobs are heard of no more."""
        with self._degraded.attempt(Cause.MEMBERS):
            lost = self._members.lose(lives)
            if lost:
                LOG.warning("brokers that are heard of no more, marked lost: %s", ", ".join(sorted(lost)))

    @staticmethod
    def _in_table(
        brokers: Iterable[OwnBroker], listed: Mapping[int, MemberRow]
    ) -> Iterator[tuple[OwnBroker, MemberRow]]:
        for broker in brokers:
            row = None if broker.sender is None else listed.get(broker.sender.broker_id)
            if row is not None:
                yield broker, row


def id_of(name: str) -> int:
    """The id of a broker that no table lists: one of 2^31, by a hash of its name."""
    return initial_shard(name, INT32_MAX)
