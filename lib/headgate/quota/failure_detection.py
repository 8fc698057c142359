"""Members that are heard of no more: who is to be marked `lost`, so that its share goes to the others.

resource-groups 5.3 leaves it to whatever watches the brokers; here every loop watches those that are not its own.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.broker_usage import BrokerUsage

SILENCES = 5


def lost_after_ms(settings: QuotaSettings) -> int:
    """How long a member may send no heartbeat: five times `resourceGroupSilentRounds`, 40 epochs by default.

    From `silentRounds` on it counts at its safe share and the others reserve that, which is right for one that is cut
    off from the table: it enforces the same share. Once it is `lost` nobody reserves anything, so the bound has to be
    longer than a disturbance that brokers are to outlive, and than the batches of a job. Its share is not wasted until
    then, but for the safe one. Raise `silentRounds`, or write `lost` by other means where a death is known sooner.
    """
    return SILENCES * settings.silent_rounds * settings.epoch_ms


class _Heard(NamedTuple):
    incarnation: int
    covered_epoch: int | None
    quiet_ms: int


FIRST_WORD = 5
"""So many times longer a life may take to its first heartbeat: a first batch starts workers and compiles."""


class FailureDetection:
    """Only time in which the table was read counts: who could not listen says nothing about others.

    That is time by which both clocks went on. A first batch takes event time from the start of all time to now, and
    one after a stop as far: nobody was listened to meanwhile.
    """

    def __init__(self, bound_ms: int) -> None:
        self._bound_ms = bound_ms
        self._heard: dict[int, _Heard] = {}
        self._read_at_ms: tuple[int, int] | None = None

    def interrupt(self) -> None:
        """The table was not read: until the next time it is, silence means nothing."""
        self._read_at_ms = None

    def overdue(self, members: Mapping[int, BrokerUsage], clock_ms: int, wall_ms: int) -> dict[int, int]:
        """Members without a new heartbeat for the bound, with their incarnations, after a read at these times."""
        before_ms, self._read_at_ms = self._read_at_ms or (clock_ms, wall_ms), (clock_ms, wall_ms)
        elapsed_ms = max(0, min(clock_ms - before_ms[0], wall_ms - before_ms[1]))
        self._heard = dict(self._listened(members, elapsed_ms))
        return {
            id_: heard.incarnation
            for id_, heard in self._heard.items()
            if heard.quiet_ms >= self._bound_ms * (FIRST_WORD if heard.covered_epoch is None else 1)
        }

    def _listened(self, members: Mapping[int, BrokerUsage], elapsed_ms: int) -> Iterator[tuple[int, _Heard]]:
        for broker_id, broker in members.items():
            now = (broker.incarnation, broker.covered_epoch)
            before = self._heard.get(broker_id)
            quiet_ms = before.quiet_ms + elapsed_ms if before is not None and before[:2] == now else 0
            yield broker_id, _Heard(*now, quiet_ms)
