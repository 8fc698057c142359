"""Commands that come as rows of throttle_decisions (throttle-protocol 6, 9, 13)."""

import json

import pytest

from headgate.errors import InvalidArgument
from unit.client.doubles import scene_of


def row(request_id, at_ms, pause_ms, **changed):
    """A command's row, as it is in the table."""
    return {
        "connection": "c",
        "seq": request_id,
        "kind": "command",
        "at_ms": at_ms,
        "request_id": request_id,
        "producer_id": 0,
        "topic": "t",
        "reason": 0,
        "pause_for_millis": pause_ms,
        "until_ms": at_ms + pause_ms,
        "command_kind": "start",
        "cause": None,
        "off_ms": None,
        **changed,
    }


@pytest.fixture
def scene():
    with scene_of(connection="c") as scene:
        scene.at(1000)
        yield scene


def test_a_row_pauses_from_its_decision_on(scene):
    scene.producer.on_row(row(1, 990, 50))
    scene.at(1039)
    assert scene.producer.is_throttled()
    scene.at(1040)
    assert not scene.producer.is_throttled()


def test_rows_in_any_order_and_number_give_the_latest_end(scene):
    rows = [row(1, 900, 500), row(2, 950, 300), row(3, 990, 20)]
    for each in [rows[2], rows[0], rows[1], rows[0]]:
        scene.producer.on_row(each)
    assert scene.receipts == [3, 1, 2, 1]
    scene.at(1399)
    assert scene.producer.is_throttled()
    scene.at(1400)
    assert not scene.producer.is_throttled()


@pytest.mark.parametrize("changed", [{"connection": "d"}, {"kind": "pause"}, {"kind": "resume"}])
def test_rows_of_others_change_nothing(scene, changed):
    scene.producer.on_row(row(1, 990, 50, **changed))
    assert (scene.producer.is_throttled(), scene.receipts, scene.producer.metrics()) == (False, [], {})


def test_a_row_may_leave_out_nulls_and_have_other_columns(scene):
    wanted = {"connection", "kind", "at_ms", "request_id", "producer_id", "pause_for_millis"}
    record = {name: value for name, value in row(1, 990, 50).items() if name in wanted}
    scene.producer.on_row(json.loads(json.dumps({**record, "offset": 7})))
    assert (scene.producer.is_throttled(), scene.receipts) == (True, [1])


@pytest.mark.parametrize(
    ("missing", "error"), [("at_ms", "bad_time"), ("request_id", "bad_request_id"), ("pause_for_millis", "bad_pause")]
)
def test_a_command_that_lacks_something_is_counted_and_changes_nothing(scene, missing, error):
    scene.producer.on_row({**row(1, 990, 50), missing: None})
    counted = scene.producer.metrics()
    assert (scene.producer.is_throttled(), scene.receipts) == (False, [])
    assert counted == {f"headgate.input.rejected.count{{error={error}}}": 1}


def test_after_a_new_connection_rows_of_its_name_are_obeyed(scene):
    scene.producer.on_connection("c2")
    scene.producer.on_row(row(1, 990, 50))
    assert not scene.producer.is_throttled()
    scene.producer.on_row(row(1, 990, 50, connection="c2"))
    assert scene.producer.is_throttled()


def test_a_producer_without_a_connection_says_how_to_name_it():
    with scene_of() as scene, pytest.raises(InvalidArgument, match="connection: got None"):
        scene.producer.on_row(row(1, 0, 50))
