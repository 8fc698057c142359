"""Which groups have to be evaluated again: those of which something changed, or becomes due by time alone.

resource-groups 9.2, 13.5.
"""

from collections.abc import Iterable

from headgate.core.quota.groups import UsageKey
from headgate.core.quota.usage.usage_row import UsageRow

_ALWAYS = -1


class ChangedGroups:
    """A group and class is named until an evaluation as of an epoch that shows all of what is new of it.

    urgent: the configuration changed, which does not wait for the next epoch.
    """

    def __init__(self) -> None:
        self.urgent = False
        self._until: dict[UsageKey, int] = {}
        self._later: dict[int, set[UsageKey]] = {}
        self._early: dict[UsageKey, int] = {}

    def changed(self, keys: Iterable[UsageKey]) -> None:
        """The quotas are others now: to be evaluated at once, as of whatever epoch."""
        for key in keys:
            self._until.setdefault(key, _ALWAYS)
            self.urgent = True

    def expect(self, key: UsageKey, epoch: int) -> None:
        """To be evaluated until it was as of `epoch`."""
        self._until[key] = max(epoch, self._until.get(key, _ALWAYS))

    def expect_later(self, key: UsageKey, epoch: int) -> None:
        """To be evaluated as of `epoch` or later, and not for its sake before: an idle broker ceases to linger."""
        self._later.setdefault(epoch, set()).add(key)

    def accepted(self, row: UsageRow, *, idle: bool, early: bool) -> None:
        """A row was read. idle: it counts for less from the next epoch on. early: it is of a running epoch."""
        self.expect(row.key, row.epoch + idle)
        if early:
            self._early[row.key] = max(row.epoch, self._early.get(row.key, _ALWAYS))

    def due(self, epoch: int) -> set[UsageKey]:
        """What is to be evaluated as of `epoch`."""
        for at in [at for at in self._later if at <= epoch]:
            for key in self._later.pop(at):
                self.expect(key, epoch)
        return set(self._until)

    def evaluated(self, epoch: int) -> None:
        """All that was due was evaluated as of `epoch`."""
        self._until = {key: until for key, until in self._until.items() if until > epoch}
        self.urgent = False

    def take_early(self, epoch: int) -> set[UsageKey]:
        """What has newer rows than an evaluation as of `epoch` showed, once."""
        early = {key for key, row_epoch in self._early.items() if row_epoch > epoch}
        self._early.clear()
        return early
