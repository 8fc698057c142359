"""Courses of shares are those of the rows of rg_usage; the fullest quota comes first."""

import pytest

from headgate.core.quota.groups import Dimension
from headgate.core.quota.settings import QuotaSettings
from headgate.quota.usage.query import UsageTables
from headgate.quota.usage.share_courses import quota_courses
from unit.quota import usage_scene


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("courses")
    usage_scene.write_scene(folder)
    return UsageTables(str(folder), QuotaSettings())


def test_the_shares_of_each_broker_go_as_its_rows_say(tables):
    gold = next(course for course in quota_courses(tables, 10) if course.group == "gold")
    before, after = usage_scene.BEFORE, usage_scene.AFTER
    moved_at = 10 - (usage_scene.EPOCH - usage_scene.SHARED_AT) - 1

    assert (Dimension.MESSAGES, 1500, 10.0) == (gold.dimension, gold.quota, gold.seconds)
    assert ["b-0", "b-1", "b-2", "b-3"] == [course.broker for course in gold.brokers]
    expected = [[before[n]] * moved_at + [after[n]] * (10 - moved_at) for n in range(3)]
    assert expected == [course.shares for course in gold.brokers[:3]]
    assert [after[n] - before[n] for n in range(3)] == [course.moved for course in gold.brokers[:3]]
    assert 200 / 1500 == gold.moved


def test_the_fullest_comes_first_and_no_more_epochs_are_told_than_there_are(tables):
    courses = quota_courses(tables, 1000)

    assert ["gold", "silver"] == [course.group for course in courses]
    assert courses[0].used > courses[1].used == 120 / 300
    assert {usage_scene.EPOCHS} == {len(one.shares) for course in courses for one in course.brokers}
    assert usage_scene.EPOCHS == courses[0].seconds
