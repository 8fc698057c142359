"""What all brokers said, read back from the tables into the usage map, in the order that leaves no sender unknown.

resource-groups 5.3, 7.
"""

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.numbers import MAX
from headgate.core.quota.groups import UsageKey
from headgate.core.quota.settings import MembershipSource, QuotaSettings
from headgate.core.quota.usage.usage_map import UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow, is_count
from headgate.errors import TableError
from headgate.quota.changed_groups import ChangedGroups
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.exchange import Exchange, UsageSource
from headgate.quota.tables.delta import nullable
from headgate.quota.tables.rg_members import MemberRow, members_up
from headgate.quota.tables.schemas import USAGE
from headgate.quota.tables.usage_rows import usage_rows

_ROWS = nullable(USAGE)


class Readback:
    """Every row is judged by the reader's clock as it was when the row could first be seen.

    Time is event time for senders and readers alike, so `publish_time` and the reader's clock are clocks of jobs.
    Between two reads that clock passes through every instant, and a row is taken at the one at which it was published,
    not before the last read and not after this one: batches of many epochs, a restart and a table that could not be
    read for a while make no row stale that the reader was late to read. What a sender published behind that, by a clock
    that is slow, is. Not so the first rows of a life: a first batch takes long and the next ones catch up, so they are
    taken as of when they were published. Heartbeats would vouch for them without saying them again.

    A reader whose input waits has not come to the time of which others speak: what is `future` to its clock, though by
    wall clock its time has come, waits here until then. So it sees them as they were, and a row that is said once is
    not missing. Where it is further off than what makes a sender silent it is behind, until it has caught up to half
    of that.

    So several jobs, one a broker, have to run at one speed, as jobs do on live input. Where they read the same recorded
    trace each at its own, the rows of the faster are `future` to the slower and those of the slower `stale` to the
    faster, once they are two epochs apart: replay a trace in one job for all brokers.

    listed: the members as read last; None before the first read, or where no table lists them.
    is_behind: others speak of a time so far ahead that their silence says nothing about them.
    """

    listed: Mapping[int, MemberRow] | None

    def __init__(
        self, tables: Exchange, settings: QuotaSettings, degraded: Degraded, changed_groups: ChangedGroups
    ) -> None:
        self._tables = tables
        self._settings = settings
        self._degraded = degraded
        self._changed_groups = changed_groups
        self._reader: UsageSource | None = None
        self._read_ms = 0
        self._ahead = _ROWS.empty_table()
        self.is_behind = False
        self.usage_map = UsageMap(settings.map_parameters())
        self.listed = None

    @property
    def lists_members(self) -> bool:
        """Whether a table says who is a member."""
        return self._settings.membership is MembershipSource.TABLE

    @property
    def knows_members(self) -> bool:
        """Whether it was ever read who they are."""
        return not self.lists_members or self.listed is not None

    def unheard(self) -> set[int]:
        """Members of whose present life nothing was heard, as far as this loop has come."""
        return {id_ for id_, broker in self.usage_map.members().items() if broker.heard_ms is None}

    def used_by_others(self, own: Collection[int]) -> frozenset[UsageKey]:
        """What members but these ids use by their newest rows, those included that this loop has not come to."""
        up = {} if self.listed is None else members_up(self.listed)
        lives = {id_: member.incarnation for id_, member in up.items()}
        entries = self.usage_map.entries().items()
        used = {(id_, key): True for key, of_brokers in entries for id_ in of_brokers}
        for row in usage_rows(self._ahead):
            is_of_group = row.valid and not (row.is_heartbeat or row.is_leave_all)
            if is_of_group and row.incarnation == lives.get(row.broker_id):
                used[row.broker_id, row.key] = not (row.is_leave or row.is_idle)
        return frozenset(key for (id_, key), is_used in used.items() if is_used and id_ not in own)

    def read(self, clock_ms: int, wall_ms: int) -> bool:
        """Take in what is new; whether usage could be read. What cannot be read stays as it was.

        Members are read after usage and used before it: who has a row in it was up before.
        """
        try:
            new = self._new_rows(clock_ms)
        except TableError as error:
            self._degraded.begin(Cause.USAGE_READ, str(error))
            self.read_members(clock_ms)
            return False
        self._degraded.end(Cause.USAGE_READ)
        self._take(usage_rows(self._due(new, clock_ms, wall_ms)), clock_ms)
        self._read_ms = clock_ms
        return True

    def _due(self, new: pa.Table, clock_ms: int, wall_ms: int) -> pa.Table:
        """Of these rows and those that wait, in the order in which a sender published them, what is to be judged now.

        What is ahead of the wall clock as well has no time to wait for.
        """
        rows = pa.concat_tables([self._ahead, new.cast(_ROWS)]) if len(self._ahead) else new
        from_us, until_us = (clock_ms + self._settings.epoch_ms) * 1000, wall_ms * 1000
        self._ahead = _ROWS.empty_table()
        if from_us < until_us and len(rows):
            published_us = rows["publish_time"].cast(pa.int64())
            waits = pc.and_(pc.greater(published_us, from_us), pc.less_equal(published_us, until_us))
            waits = pc.fill_null(waits, fill_value=False)
            self._ahead = rows.filter(waits).cast(_ROWS)
            rows = rows.filter(pc.invert(waits))
        silent_ms = self._settings.silent_rounds * self._settings.epoch_ms
        is_late = wall_ms - clock_ms > (silent_ms // 2 if self.is_behind else silent_ms)
        self.is_behind = is_late and len(self._ahead) > 0
        return rows

    def _new_rows(self, clock_ms: int) -> pa.Table:
        """Rows that were not read before, and now the members. What a TableError cuts short is read again."""
        reader, self._reader = self._reader or self._tables.usage_reader(), None
        try:
            new = reader.read(clock_ms)
        except TableError:
            self._reader = reader
            raise
        self.read_members(clock_ms)
        rows = new.rows
        if new.whole:
            rows = pa.concat_tables([reader.earlier(self._quiet(usage_rows(rows)), clock_ms), rows])
        self._reader = reader
        return rows

    def _quiet(self, rows: Iterable[UsageRow]) -> dict[int, int]:
        """Incarnations of members of whom these rows do not say all: who is not heard; all if rows are said once."""
        says_again = self._settings.suppress_rounds >= 0
        heard = {row.broker_id for row in rows if row.is_heartbeat and says_again}
        up = {} if self.listed is None else members_up(self.listed)
        return {id_: member.incarnation for id_, member in up.items() if id_ not in heard}

    def read_members(self, clock_ms: int) -> None:
        """Take in who is up."""
        if not self.lists_members:
            return
        with self._degraded.attempt(Cause.MEMBERS):
            listed = self._tables.members.read()
            if listed is not self.listed:
                self.usage_map.set_members(members_up(listed), clock_ms)
            self.listed = listed

    def _take(self, rows: Iterable[UsageRow], clock_ms: int) -> None:
        current_epoch = clock_ms // self._settings.epoch_ms
        unheard = self.unheard()
        for row in rows:
            published_ms = row.publish_time_ms if is_count(row.publish_time_ms) else clock_ms
            seen_ms = published_ms if row.broker_id in unheard else max(published_ms, self._read_ms)
            at_ms = min(seen_ms, clock_ms)
            is_leave_all = row.is_leave_all
            left = self._keys_of(row.broker_id) if is_leave_all else ()
            if self.usage_map.receive(row, at_ms) is None:
                for key in left:
                    self._changed_groups.expect(key, row.epoch)
                if not (is_leave_all or row.is_heartbeat):
                    self._note(row, early=row.kind == ReportKind.EVENT and row.epoch >= current_epoch - 1)
        self.usage_map.expire(clock_ms)

    def _keys_of(self, broker_id: int) -> tuple[UsageKey, ...]:
        broker = self.usage_map.member(broker_id)
        return () if broker is None else tuple(broker.histories)

    def _note(self, row: UsageRow, *, early: bool) -> None:
        """What the row makes due. A late one that is not idle makes a later one linger that is."""
        self._changed_groups.accepted(row, idle=not row.is_leave and row.is_idle, early=early)
        broker = None if row.is_leave else self.usage_map.member(row.broker_id)
        entry = None if broker is None else broker.as_of(row.key, MAX)
        if entry is not None and entry.idle_since is not None:
            self._changed_groups.expect_later(row.key, entry.idle_since + self._settings.linger_rounds)
