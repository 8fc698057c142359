"""Tables of one test in its folder, and cuts to put into them."""

from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.usage_rows import Sender, SentReport, usage_rows

SETTINGS = QuotaSettings()
HOUR = 480_000
EPOCH = HOUR * 3600
NOW_MS = (EPOCH + 1) * 1000
SHARDS = dict.fromkeys(range(1, 100), 0)
USAGE = Usage((10, 1000), (12, None), (None, 0), (True, False))


def tables(folder, **settings):
    chosen = QuotaSettings(**settings)
    return QuotaTables(Locations.of(folder, chosen), chosen)


def cut(seq, *groups, epoch=EPOCH, broker=7, kind=ReportKind.PERIODIC, closes=True, incarnation=1_700_000_000_000):
    rows = tuple(ReportRow(group, 0, USAGE, ReportReason.FIRST) for group in groups)
    sent = UsageReport(seq, epoch, kind, closes, epoch * 1000, 3, rows)
    return SentReport(Sender(broker, incarnation, 2), sent, NOW_MS, {(group, 0): group for group in groups})


def said(read):
    """What rows say, in short: (broker, seq, group) of each."""
    return [(row.broker_id, row.seq, row.group_id) for row in usage_rows(read.rows)]
