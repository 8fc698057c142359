"""Sums of topic_usage as `headgate usage` asks for them."""

from datetime import UTC, datetime

import pyarrow as pa

from headgate.quota.usage.topic_query import TopicUsage
from headgate.throttle.schemas import TOPIC_USAGE
from unit.report.empty_tables import empty_tables


def test_the_worst_second_is_that_in_which_limits_held_most_of_all_scopes_or_of_groups_alone(tmp_path):
    usage = [
        {"event_time": datetime.fromtimestamp(at, UTC), "topic": "persistent://t/n/t", "broker": "b", "publishes": 9}
        | {"throttled_publishes": held, "throttled_by_group": by_group}
        for at, held, by_group in ((10, 0, 0), (11, 8, 1), (12, 3, 3), (13, 3, 3), (14, 9, 0))
    ]
    empty_tables(tmp_path).append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)
    topics = TopicUsage(str(tmp_path))

    assert topics.worst_s(1) == (14, True, 10, 14)
    assert topics.worst_s(1, by_groups=True) == (12, True, 10, 14)
    assert topics.worst_s(2, by_groups=True) == (13, True, 10, 14)
    assert topics.newest_s() == 14


def test_failed_publishes_count_before_throttled_ones(tmp_path):
    usage = [
        {"event_time": datetime.fromtimestamp(at, UTC), "topic": "persistent://t/n/t", "broker": "b", "publishes": 9}
        | {"throttled_publishes": held, "failed_publishes": failed}
        for at, held, failed in ((10, 1, 5), (11, 90, 4))
    ]
    empty_tables(tmp_path).append("topic_usage", pa.Table.from_pylist(usage, TOPIC_USAGE), "query", 0)

    assert TopicUsage(str(tmp_path)).worst_s(1) == (10, True, 10, 11)
