"""Groups move at most hourly, in one configuration version, whoever asks (resource-groups 13.3)."""

import pytest
from deltalake import Transaction

from headgate.core.quota.groups import ResourceGroup
from headgate.quota.placement import place_groups
from headgate.quota.tables.config_store import ADMIN
from headgate.quota.tables.usage_rows import HOUR_MS
from unit.quota.places import NOW_MS, tables

LEFT, RIGHT = frozenset([0, 1]), frozenset([2, 3])
HOLDERS = {1: LEFT, 2: RIGHT, 3: LEFT, 4: RIGHT}


@pytest.fixture
def store(tmp_path):
    """Four groups in one shard."""
    made = tables(tmp_path).config
    rows = [ResourceGroup(number, f"group-{number}", shard=0, version=number) for number in HOLDERS]
    assert made.write(rows, made.read().version)
    return made


def shards_of(store):
    return {group.group_id: group.shard for group in store.read().groups.values()}


def test_groups_that_move_are_one_configuration_version(store):
    before = store.read()

    assert place_groups(store, HOLDERS, 64, NOW_MS) == 2

    moved = [group for group in store.read().groups.values() if group != before.groups[group.name]]
    assert {1: 0, 2: 1, 3: 0, 4: 1} == shards_of(store)
    assert {before.version + 1} == {group.version for group in moved}


def test_an_hour_has_one_placement(store, tmp_path):
    place_groups(store, HOLDERS, 64, NOW_MS)
    mixed = HOLDERS | {3: RIGHT, 2: LEFT}

    assert place_groups(tables(tmp_path).config, mixed, 64, NOW_MS) == 0
    assert place_groups(store, mixed, 64, NOW_MS + HOUR_MS) == 2


def test_groups_that_are_gone_are_passed_over(store):
    assert place_groups(store, HOLDERS | {9: LEFT}, 64, NOW_MS) == 2


def test_without_groups_in_use_nothing_is_written(store):
    version = store.groups.refresh()

    assert place_groups(store, {}, 64, NOW_MS) == 0
    assert version == store.groups.refresh()


def test_groups_stay_attachable_while_a_write_is_broken_off(store):
    store.groups.commit_pinned([], [Transaction(ADMIN, 1)])

    assert place_groups(store, HOLDERS, 64, NOW_MS) == 2
