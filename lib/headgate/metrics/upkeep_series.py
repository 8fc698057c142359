"""What the endpoint of any job or service tells of old rows that it deleted from its tables."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate.metrics.series import COUNTER, Series
from headgate.tables.upkeep import DELETED

ROWS = Series("headgate_table_deleted_rows_total", COUNTER, "Old rows that were deleted.", ("table",))
FILES = Series("headgate_table_deleted_files_total", COUNTER, "Files that held old rows, and are replaced.", ("table",))


class UpkeepSeries(Collector):
    """As of now, for a scrape."""

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client."""
        deleted = DELETED.taken()
        for series, counts in (
            (ROWS, {table: one.rows for table, one in deleted.items()}),
            (FILES, {table: one.files for table, one in deleted.items()}),
        ):
            family = CounterMetricFamily(series.name, series.meaning, labels=series.labels)
            for table, count in counts.items():
                family.add_metric([table], count)
            yield family
