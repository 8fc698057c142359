"""The exchange without tables: rows come back once, in order, and after the delay."""

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.usage_report import ReportKind, UsageReport
from headgate.errors import TableError
from headgate.quota.memory import MemoryExchange
from headgate.quota.tables.usage_rows import Sender, SentReport


def exchange(delay_ms=0):
    return MemoryExchange(ConfigTables(), QuotaSettings(), delay_ms)


def sent(seq, at_ms):
    return SentReport(Sender(7, 1), UsageReport(seq, seq, ReportKind.PERIODIC, True, at_ms, 0, ()), at_ms)


def seqs(usage, now_ms):
    return usage.read(now_ms).rows["seq"].to_pylist()


def test_a_cut_is_read_once_and_not_before_its_delay_is_over():
    made = exchange(delay_ms=500)
    usage = made.usage_reader()
    made.usage.append([sent(1, 1000), sent(2, 1000)], {})
    made.usage.append([sent(3, 1400)], {})
    assert [[], [1, 2], [], [3], []] == [seqs(usage, at) for at in (1499, 1500, 1899, 1900, 9000)]


def test_members_keep_their_ids_and_begin_newer_lives():
    members = exchange().members
    first = members.join({"b": 1, "a": 2}, 100)
    again = members.join({"a": 2}, 50)
    assert {"a": 0, "b": 1} == {name: row.broker_id for name, row in first.items()}
    assert (0, 101) == (again["a"].broker_id, again["a"].incarnation)
    assert {0, 1} == set(members.read())


def test_nothing_else_is_kept():
    made = exchange()
    assert not made.limits.append([], ("a", 1))
    assert not made.config.is_of_attachments(TableError("x"))
    assert made.config.read() is made.config.read()
