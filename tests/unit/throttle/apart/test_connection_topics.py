"""Topics and the connections that they publish over: told once a pair, whatever the batches."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.throttle.form import Rules
from unit.throttle.domains import changes_block, events_block, limit, picture, step_through, tick_block
from unit.throttle.drawn import cuts, limit_changes, quick, traffic
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, event

RULES = Rules(connection_topics=True)
T0, T1 = TOPICS[0], TOPICS[1]


def attached(outcome):
    return [
        (row["at_ns"] // 1000 - START_US, row["topic"], row["producer"], row["connection"], row["seq"])
        for row in outcome.marks
        if row["action"] == "attach"
    ]


def test_the_first_publish_of_a_topic_over_a_connection_is_told_and_no_other():
    batches = [
        [events_block([event(5, T0, seq=2), event(1, T1, seq=1), event(9, T0, producer="q", seq=3)])],
        [events_block([event(20, T0, seq=4), event(21, T1, producer="q", seq=5)])],
    ]
    outcome = step_through(batches, RULES)

    assert [
        (1, T1, "p", "connection-p", 1),
        (5, T0, "p", "connection-p", 2),
        (9, T0, "q", "connection-q", 3),
        (21, T1, "q", "connection-q", 5),
    ] == attached(outcome)
    assert {(None, None, None, BROKER)} == {
        (row["type"], row["scope"], row["limiter"], row["broker"]) for row in outcome.marks
    }


def test_what_is_kept_is_in_an_order_of_its_own_however_rows_came():
    rows = [event(5, T1, producer="q", seq=2), event(9, T0, seq=3), event(1, T1, producer="p", seq=1)]
    connections, pairs = picture(step_through([[events_block(rows)]], RULES).state)[BROKER]["connection_topics"]

    assert ["connection-p", "connection-q"] == connections
    assert sorted(pairs) == pairs == [0, 1, 2**32]


def test_a_late_first_publish_is_told_at_the_domains_clock():
    outcome = step_through([[tick_block(SECOND_US), events_block([event(9)])], [events_block([event(3, T0)])]], RULES)

    assert [SECOND_US] == [at_us for at_us, topic, *_ in attached(outcome) if topic == T0]


def test_without_the_setting_nothing_is_told_or_kept():
    outcome = step_through([[events_block([event(0)])]], Rules())

    assert ([], ([], [])) == (outcome.marks, picture(outcome.state)[BROKER]["connection_topics"])


def test_a_pair_is_told_before_the_mark_of_its_first_publish():
    rows = [event(0, seq=0), event(0, seq=1)]
    outcome = step_through([[changes_block([limit("default", messages=1)]), events_block(rows)]], RULES)

    assert ["attach", "mark"] == [row["action"] for row in outcome.marks][:2]


@quick
@given(st.data(), traffic(), limit_changes(), st.booleans())
def test_batches_change_nothing_and_marks_are_as_without(data, rows, changes, offered):
    rules = Rules(connection_topics=True, offered=offered)
    block, end = [changes_block(changes)], [tick_block(rows[-1]["event_time_us"] - START_US)]
    whole = step_through([block, [events_block(rows)], end], rules)
    split = step_through([block, *data.draw(cuts(rows)), end], rules)
    without = step_through([block, [events_block(rows)], end], Rules(offered=offered))

    assert attached(whole) == attached(split)
    assert whole.written == split.written
    assert picture(whole.state)[BROKER]["connection_topics"] == picture(split.state)[BROKER]["connection_topics"]
    assert without.marks == [row for row in whole.marks if row["action"] != "attach"]
    assert {(row["topic"], row["connection"]) for row in rows} == {(pair[1], pair[3]) for pair in attached(whole)}
