"""The gate over a real table of decisions that grows while it runs."""

import asyncio
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gate_clients import Client, RunningGate, running
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import Reason
from headgate.errors import TableError
from headgate.gate.decisions import DecisionReader
from headgate.gate.receipts import ReceiptLog
from headgate.gate.settings import GateSettings
from headgate.gate.table_feed import TableFeed
from headgate.protocol.schemas import DECISIONS, INPUTS
from headgate.tables.query import query
from headgate.wire import ThrottleProducer
from unit.client.doubles import Gate
from unit.gate.driven import Told

LONG_MS = 600_000
COMMANDS = "headgate.gate.command.count{outcome=%s}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def command(
    connection: str, seq: int, pause_ms: int = LONG_MS, *, at_ms: int | None = None, **other: Any
) -> dict[str, Any]:
    at_ms = now_ms() if at_ms is None else at_ms
    row = {"connection": connection, "seq": seq, "kind": "command", "at_ms": at_ms, "request_id": seq, "producer_id": 7}
    until_ms = at_ms + pause_ms if pause_ms else None
    return row | {"topic": "t", "reason": 1, "pause_for_millis": pause_ms, "until_ms": until_ms} | other


def append(location: str, *rows: dict[str, Any]) -> None:
    write_deltalake(location, pa.Table.from_pylist(list(rows), DECISIONS), mode="append")


@pytest.fixture
def table(tmp_path: Path) -> str:
    location = str(tmp_path / "throttle_decisions")
    DeltaTable.create(location, schema=DECISIONS)
    return location


def gate_of(table: str, receipts: str | None = None) -> RunningGate:
    reader = DecisionReader(table)

    def feed(_clock: Any, counters: Any) -> TableFeed:
        log = None if receipts is None else ReceiptLog(receipts, print)
        return TableFeed(reader, now_ms, counters, poll_ms=10, say=print, receipts=log)

    return RunningGate(GateSettings.of({"--port": 0}), feed)


@pytest.fixture
def gate(table: str) -> Iterator[RunningGate]:
    with running(gate_of(table)) as gate:
        yield gate


def ids(client: Client, count: int) -> list[int]:
    return [client.told().request_id for _ in range(count)]


def counted(gate: RunningGate, outcome: str) -> int:
    return gate.do(gate.counters.values).get(COMMANDS % outcome, 0)


def test_what_is_left_of_a_pause_is_sent_when_its_row_is_committed(table: str, gate: RunningGate) -> None:
    with gate.client("c") as client:
        append(table, command("c", 1, at_ms=now_ms() - 1000))
        told = client.told()

        assert told == ThrottleProducer(1, 7, Reason.ResourceGroupProduceQuotaExceeded, told.pause_ms)
        assert LONG_MS - 11_000 < told.pause_ms <= LONG_MS - 1000


def test_each_client_hears_its_own_commands_in_their_order(table: str, gate: RunningGate) -> None:
    with gate.client("a") as first, gate.client("b") as second:
        append(table, command("b", 2), command("a", 1), command("b", 1), command("nobody", 1))
        append(table, command("a", 2), command("b", 3))

        assert (ids(first, 2), ids(second, 3)) == ([1, 2], [1, 2, 3])


def test_pauses_resumes_and_stale_commands_are_sent_to_nobody(table: str, gate: RunningGate) -> None:
    long_ago_ms = now_ms() - LONG_MS
    with gate.client("c") as client:
        append(table, command("c", 1))
        assert ids(client, 1) == [1]  # from here on it is told of every commit
        append(
            table,
            {"connection": "c", "seq": 2, "kind": "pause", "at_ms": now_ms(), "reason": 5, "cause": "condition"},
            {"connection": "c", "seq": 3, "kind": "resume", "at_ms": now_ms(), "off_ms": 5},
            command("c", 4, 1000, at_ms=long_ago_ms),
            command("c", 5, 0, at_ms=long_ago_ms),
            command("c", 6, producer_id=None),
            command("c", 7),
        )

        assert ids(client, 1) == [7]
        assert [counted(gate, outcome) for outcome in ("sent", "stale", "bad")] == [2, 2, 1]


def test_a_notice_is_sent_as_one(table: str, gate: RunningGate) -> None:
    with gate.client("c") as client:
        append(table, command("c", 1, 0, reason=2))
        assert client.told() == ThrottleProducer(1, 7, Reason.ConnectionPendingMessagesBreach, 0)


def test_a_client_that_comes_later_is_told_what_is_in_force(table: str) -> None:
    append(table, command("c", 1, 10, at_ms=now_ms() - 5000), command("c", 2), command("other", 1), command("c", 3))
    with running(gate_of(table)) as gate, gate.client("c") as client:
        assert ids(client, 2) == [2, 3]
        append(table, command("c", 4))
        assert ids(client, 1) == [4]


def test_a_client_without_the_flag_is_told_nothing(table: str, gate: RunningGate) -> None:
    with gate.client("old", supports=False) as old, gate.client("new") as new:
        append(table, command("old", 1), command("new", 1))
        assert ids(new, 1) == [1]
        old.round_trip()


def test_rows_that_are_written_again_are_sent_once(table: str, gate: RunningGate) -> None:
    """As a compaction writes them, and as another engine might that does not say so."""
    with gate.client("c") as client:
        append(table, command("c", 1))
        append(table, command("c", 2))
        assert ids(client, 2) == [1, 2]
        DeltaTable(table).optimize.compact()
        append(table, command("c", 1), command("c", 2), command("c", 3))
        assert ids(client, 1) == [3]


def test_a_client_that_comes_again_is_told_what_is_in_force(table: str, gate: RunningGate) -> None:
    """What was written to a socket that died may not have arrived; a client knows what it has by its request id."""
    with gate.client("c") as client:
        append(table, command("c", 1), command("c", 2, 10))
        assert client.told().request_id == 1
    gate.await_that(lambda: gate.gate.connections == 0, "the end of the connection")
    append(table, command("c", 3))
    with gate.client("c") as client:
        assert ids(client, 2) == [1, 3]


class HeldReader(DecisionReader):
    """What was read is handed out when `held`, if it is there, lets it go."""

    held: Gate | None = None

    def read(self, known: Collection[str], new: Collection[str], now_ms: int) -> pa.Table:
        rows = super().read(known, new, now_ms)
        if self.held is not None:
            self.held.stay()
        return rows


def test_a_client_that_comes_again_during_a_look_is_told_all_that_is_in_force_with_the_next(table: str) -> None:
    """What that look found is new for the one that was there, and less than what the one that came has to know."""
    reader, first, second = HeldReader(table), Told(), Told()
    feed = TableFeed(reader, now_ms, Counters(), poll_ms=10, say=print)

    async def come_again_during_a_look() -> None:
        seat = feed.join("c", first, supports=True)
        append(table, command("c", 1))
        await feed._look()
        append(table, command("c", 2))
        reader.held = held = Gate()
        look = asyncio.create_task(feed._look())
        await asyncio.to_thread(held.wait_reached)
        seat.leave()
        feed.join("c", second, supports=True)
        held.let_go()
        await look
        reader.held = None
        await feed._look()

    asyncio.run(come_again_during_a_look())
    assert [[told.request_id for told in one.said] for one in (first, second)] == [[1], [1, 2]]


def test_a_gate_that_starts_again_tells_what_is_in_force(table: str) -> None:
    for new in (1, 2):
        append(table, command("c", new))
        with running(gate_of(table)) as gate, gate.client("c") as client:
            assert ids(client, new) == list(range(1, new + 1))


@pytest.mark.parametrize("bad", [{"producer_id": -1}, {"request_id": -1}, {"pause_for_millis": -5}, {"seq": None}])
def test_a_row_with_a_bad_number_is_counted_and_ends_nothing(
    table: str, gate: RunningGate, bad: dict[str, int | None]
) -> None:
    with gate.client("c") as client:
        append(table, command("c", 1))
        assert ids(client, 1) == [1]
        append(table, command("c", 2) | bad, command("c", 3))

        assert ids(client, 1) == [3]
        assert counted(gate, "bad") == 1


def test_receipts_are_written_while_commands_cannot_be_read(table: str, tmp_path: Path) -> None:
    inputs, away = str(tmp_path / "inputs"), tmp_path / "away"
    with running(gate_of(table, inputs)) as gate, gate.client("c") as client:
        append(table, command("c", 1))
        assert ids(client, 1) == [1]
        Path(table).rename(away)
        gate.await_that(lambda: gate.feed._is_failing, "the failure")
        client.answer(1)
        gate.await_that(lambda: DeltaTable.is_deltatable(inputs), "the row of the receipt")
        away.rename(table)


def test_a_table_that_cannot_take_receipts_is_refused_before_a_client_comes(table: str) -> None:
    with pytest.raises(TableError, match=r"cannot take receipts: got columns .*needed event_id string"):
        ReceiptLog(table, print)


def test_receipts_go_to_a_table_with_columns_of_its_own(tmp_path: Path) -> None:
    inputs = str(tmp_path / "inputs")
    columns = ["event_id", "kind", "at_ms", "connection", "request_id", "producer_id"]
    own = pa.table({name: pa.array([None], INPUTS.field(name).type) for name in columns} | {"note": ["mine"]})
    write_deltalake(inputs, own)
    said: list[str] = []
    log = ReceiptLog(inputs, said.append)
    log.add("c", 7, 1000)
    log.flush()

    assert [] == said
    rows = query("SELECT * FROM t ORDER BY request_id NULLS LAST", {"t": DeltaTable(inputs)}).to_pylist()
    assert [(7, None), (None, "mine")] == [(row["request_id"], row["note"]) for row in rows]


def test_a_table_of_its_own_receipts_has_few_files_and_another_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.tables.upkeep.COMPACTED_EVERY", 5)
    write_deltalake(tmp_path / "another", INPUTS.empty_table())
    files = []
    for name in ("own", "another"):
        log = ReceiptLog(str(tmp_path / name), print)
        for request_id in range(12):
            log.add("c", request_id, 1000)
            log.flush()
            log.keep_up()
        written = DeltaTable(tmp_path / name)
        rows = query("SELECT request_id FROM t ORDER BY request_id", {"t": written})
        assert list(range(12)) == rows["request_id"].to_pylist()
        files.append(len(written.file_uris()))
    assert files[0] <= 5 < 12 == files[1]


def test_a_commit_that_is_told_to_have_failed_is_not_written_again(tmp_path: Path) -> None:
    """Each tenth writes a checkpoint behind it, which a full disk or a store may refuse."""
    location, said = tmp_path / "inputs", list[str]()
    log = ReceiptLog(str(location), said.append)
    in_its_way = location / "_delta_log" / f"{9:020d}.checkpoint.parquet"
    (in_its_way / "x").mkdir(parents=True)
    for request_id in range(9):
        log.add("c", request_id, 1000)
        (log.flush if request_id < 8 else log.end)()
    rows = query("SELECT request_id FROM t ORDER BY request_id", {"t": DeltaTable(location)})
    assert list(range(9)) == rows["request_id"].to_pylist()
    assert [f"receipts cannot be written to {location}", "receipts are written again"] == [
        line.partition(":")[0] for line in said
    ]


def test_receipts_that_cannot_be_written_are_written_later_each_once(tmp_path: Path) -> None:
    location, away, said = tmp_path / "inputs", tmp_path / "away", list[str]()
    log = ReceiptLog(str(location), said.append)
    for request_id in range(6):
        if request_id == 2:
            location.rename(away)
        if request_id == 5:
            away.rename(location)
        log.add("c", request_id, 1000)
        log.flush()
    rows = query("SELECT request_id FROM t ORDER BY request_id", {"t": DeltaTable(location)})
    assert list(range(6)) == rows["request_id"].to_pylist()
    assert [f"receipts cannot be written to {location}", "receipts are written again"] == [
        line.partition(":")[0] for line in said
    ]


def test_receipts_that_are_lost_are_told_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.gate.receipts.MOST_WAITING", 1)
    location, said = tmp_path / "inputs", list[str]()
    log = ReceiptLog(str(location), said.append)
    location.rename(tmp_path / "away")
    for request_id in range(3):
        log.add("c", request_id, 1000)
        log.flush()
    log.end()
    assert "receipts that were not written: 3; a broker that waits for one turns reads off" == said[-1]


def test_gates_that_write_to_one_table_are_told_apart(tmp_path: Path) -> None:
    logs = [ReceiptLog(str(tmp_path / "inputs"), print) for _ in range(2)]
    for request_id in range(4):
        logs[request_id % 2].add("c", request_id, 1000)
        logs[request_id % 2].flush()
    rows = query("SELECT request_id FROM t ORDER BY request_id", {"t": DeltaTable(tmp_path / "inputs")})
    assert list(range(4)) == rows["request_id"].to_pylist()


def test_receipts_are_written_where_the_table_cannot_be_tidied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise RuntimeError("damaged")

    monkeypatch.setattr("headgate.tables.upkeep.COMPACTED_EVERY", 1)
    monkeypatch.setattr("headgate.gate.receipts.keep_up", damaged)
    log = ReceiptLog(str(tmp_path / "inputs"), print)
    for request_id in (1, 2):
        log.add("c", request_id, 1000)
        log.flush()
        log.keep_up()
    assert "inputs was not tidied, which is tried again: damaged" in caplog.text
    assert 2 == len(query("SELECT * FROM t", {"t": DeltaTable(tmp_path / "inputs")}))


def test_commands_do_not_wait_for_receipts_that_are_being_written(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = threading.Event()
    monkeypatch.setattr(ReceiptLog, "flush", lambda _: writes.wait(60))
    with running(gate_of(table, receipts=str(tmp_path / "inputs"))) as gate, gate.client("c") as client:
        append(table, command("c", 1))
        assert ids(client, 1) == [1]
        writes.set()


def test_receipts_become_rows_of_the_jobs_input(table: str, tmp_path: Path) -> None:
    inputs = str(tmp_path / "inputs")
    with running(gate_of(table, receipts=inputs)) as gate, gate.client("c") as client:
        append(table, command("c", 1), command("c", 2))
        for request_id in ids(client, 2):
            client.answer(request_id)
        client.round_trip()
    written = DeltaTable(inputs)
    rows = query("SELECT * FROM t ORDER BY event_id", {"t": written}).to_pylist()

    assert pa.schema(written.schema().to_arrow()) == INPUTS
    assert [(row["kind"], row["connection"], row["request_id"]) for row in rows] == [
        ("receipt", "c", 1),
        ("receipt", "c", 2),
    ]
    assert all(abs(row["at_ms"] - now_ms()) < 60_000 for row in rows)


def test_a_table_that_cannot_be_read_for_a_while_costs_no_client_its_connection(table: str, tmp_path: Path) -> None:
    away = tmp_path / "away"
    with running(gate_of(table)) as gate, gate.client("c") as client:
        Path(table).rename(away)
        gate.await_that(lambda: gate.feed._is_failing, "the failure")
        client.round_trip()
        away.rename(table)
        append(table, command("c", 1))

        assert ids(client, 1) == [1]


@pytest.mark.parametrize("columns", [None, ["connection", "seq"]])
def test_a_place_without_the_table_is_refused(columns: list[str] | None, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    if columns:
        DeltaTable.create(location, schema=pa.schema([DECISIONS.field(name) for name in columns]))
    with pytest.raises(TableError, match=r"jobs/protocol\.py"):
        DecisionReader(location)


def test_columns_of_later_days_are_not_looked_at(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    DeltaTable.create(location, schema=DECISIONS.append(pa.field("later", pa.string())))
    with running(gate_of(location)) as gate, gate.client("c") as client:
        rows = pa.Table.from_pylist(
            [command("c", 1) | {"later": "x"}], DECISIONS.append(pa.field("later", pa.string()))
        )
        write_deltalake(location, rows, mode="append")
        assert ids(client, 1) == [1]
