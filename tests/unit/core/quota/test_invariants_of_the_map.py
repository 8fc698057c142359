"""Invariants 10 to 12 of resource-groups 17 on the usage map, and the round trip of its state."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.quota.evaluation.view import cell_view, choose_epoch
from headgate.core.quota.usage.usage_map import MapParameters, Member, UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow
from unit.core.quota.rows import AT_MS

BROKERS = (1, 2)
KEYS = ((7, 0), (7, 1), (8, 0))
quick = settings(max_examples=examples(40))

amounts = st.sampled_from([0, 0, 1, 10, 2**60])
optional = st.none() | amounts
pairs = st.tuples(amounts, amounts)
values = st.fixed_dictionaries(
    {
        "admitted": pairs,
        "offered": st.tuples(optional, optional),
        "limit": st.tuples(optional, optional),
        "throttled": st.sampled_from([(False, False), (False, False), (True, False)]),
    }
)
subjects = st.sets(st.sampled_from(KEYS), min_size=1)


@st.composite
def cuts(draw, broker_id, incarnation, seq):
    """One append: rows of some groups, leaves of some groups, a leave-all, or a heartbeat alone; one seq for all."""
    epoch = 6 + draw(st.integers(0, 4))
    head = {"publish_time_ms": AT_MS, "broker_id": broker_id, "incarnation": incarnation, "seq": seq, "epoch": epoch}
    form = draw(st.sampled_from(["rows", "rows", "rows", "leaves", "leave all", "heartbeat"]))
    if form == "leave all":
        return [UsageRow(**head, group_id=0, kind=ReportKind.LEAVE)]
    keys = sorted(draw(subjects))
    if form == "leaves":
        return [UsageRow(**head, group_id=group, traffic_class=class_, kind=ReportKind.LEAVE) for group, class_ in keys]
    rows = [UsageRow(**head, group_id=group, traffic_class=class_, **draw(values)) for group, class_ in keys]
    return [UsageRow(**head, group_id=0), *(rows if form == "rows" else [])]


@st.composite
def lives(draw):
    """All rows of some brokers: up to two incarnations each, cuts in the order of their seqs."""
    rows = []
    for broker_id in BROKERS:
        for incarnation in range(1, 1 + draw(st.integers(1, 2))):
            for seq in range(1, 1 + draw(st.integers(0, 3))):
                rows += draw(cuts(broker_id, incarnation, seq))
    return rows


def reader(**parameters):
    usage_map = UsageMap(MapParameters(**parameters))
    usage_map.set_members({broker_id: Member(1) for broker_id in BROKERS}, 0)
    return usage_map


def result(usage_map):
    """What all readers agree on: entries, members, how far they were heard. Dropped rows are counted by each."""
    members = {id_: (broker.incarnation, broker.covered_epoch) for id_, broker in usage_map.members().items()}
    return usage_map.entries(), members


@quick
@given(lives(), st.data(), st.booleans())
def test_11_the_map_is_the_same_for_every_order_and_multiplicity_of_the_rows(rows, data, members_listed):
    in_order, shuffled = (reader(members_listed=members_listed) for _ in range(2))
    for row in rows:
        in_order.receive(row, AT_MS)
    repeated = rows + data.draw(st.lists(st.sampled_from(rows), max_size=10)) if rows else rows
    for row in data.draw(st.permutations(repeated)):
        shuffled.receive(row, AT_MS)

    assert result(in_order) == result(shuffled)


@quick
@given(
    lives(),
    st.lists(st.tuples(st.sampled_from(["tick", "lose", "join"]), st.sampled_from(BROKERS)), max_size=6),
    st.data(),
)
def test_12_zero_leave_and_membership_loss_remove_and_nothing_else_does(rows, events, data):
    """A new incarnation removes as well: it is the end of the old one's membership."""
    usage_map, at_ms = reader(stale_ms=10**12), AT_MS
    for message in data.draw(st.permutations([*rows, *events])):
        at_ms += data.draw(st.sampled_from([0, 1, 10**6]))
        before = {(key, id_) for key, entries in usage_map.entries().items() for id_ in entries}
        incarnations = {id_: broker.incarnation for id_, broker in usage_map.members().items()}
        accepted = act(usage_map, message, at_ms)
        after = {(key, id_) for key, entries in usage_map.entries().items() for id_ in entries}
        for key, broker_id in before - after:
            assert accepted
            assert explains(message, key, broker_id) or incarnations[broker_id] < incarnation(usage_map, broker_id)


def incarnation(usage_map, broker_id):
    return usage_map.members()[broker_id].incarnation


def act(usage_map, message, at_ms):
    match message:
        case UsageRow():
            return usage_map.receive(message, at_ms) is None
        case "tick", _:
            usage_map.expire(at_ms)
        case "lose", broker_id:
            usage_map.lose(broker_id, at_ms)
        case "join", broker_id:
            usage_map.join(broker_id, Member(1), at_ms)
    return True


def explains(message, key, broker_id):
    """Whether the message is one that removes what `broker_id` said about `key`."""
    match message:
        case UsageRow():
            idle = not any((*message.admitted, *message.offered, *message.throttled)) if message.key == key else False
            return message.broker_id == broker_id and (
                message.is_leave_all or (message.key == key and (idle or message.is_leave))
            )
        case "lose", lost:
            return lost == broker_id
    return False


@quick
@given(lives(), st.data(), st.booleans())
def test_state_is_plain_and_round_trips_between_any_two_messages(rows, data, members_listed):
    parameters = MapParameters(members_listed=members_listed, stale_ms=3000, linger_rounds=2)
    kept, stored = UsageMap(parameters), UsageMap(parameters)
    for usage_map in (kept, stored):
        usage_map.set_groups([7, 8])
        usage_map.set_members({broker_id: Member(1) for broker_id in BROKERS}, 0)
    at_ms = AT_MS
    for row in data.draw(st.permutations(rows)):
        at_ms += data.draw(st.sampled_from([0, 1, 700]))
        assert kept.receive(row, at_ms) == stored.receive(row, at_ms)
        stored = UsageMap.from_state(json.loads(json.dumps(stored.state(), allow_nan=False)), parameters)
        assert kept.state() == stored.state()
    kept.expire(at_ms + 20_000)
    stored.expire(at_ms + 20_000)
    assert kept.state() == stored.state()


@quick
@given(lives())
def test_10_readers_of_the_same_rows_have_the_same_views(rows):
    """Rows in the order of the table; how they are divided into reads does not matter."""
    one, other = reader(), reader()
    for row in rows:
        one.receive(row, AT_MS)
    for row in rows:
        other.receive(row, AT_MS)
        other = UsageMap.from_state(other.state(), other.parameters)

    assert [choose_epoch(one, broker_id, 10) for broker_id in BROKERS] == [
        choose_epoch(other, broker_id, 10) for broker_id in BROKERS
    ]
    assert [cell_view(one, key, 0, epoch) for key in KEYS for epoch in (8, 9)] == [
        cell_view(other, key, 0, epoch) for key in KEYS for epoch in (8, 9)
    ]
