"""The entry cache's and the protocol's jobs on the local engine: no row depends on batches or the order of blocks."""

import random
from functools import partial
from itertools import islice, zip_longest

import pyarrow as pa
import pytest

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.events.parse import parse_cache_events
from headgate.cache.schemas import OF_CACHE
from headgate.conf import InputSettings
from headgate.core.cache.traces.workload import generate
from headgate.engines.tables import BufferedTables
from headgate.protocol.schemas import INPUTS, OF_PROTOCOL
from headgate.rows.traffic import Parsed
from headgate.throttle.schemas import MARKS
from local_jobs import LocalCache, LocalProtocol
from unit.local_runs import START_US, conf_of, cut, in_order, parsed
from unit.protocol import traffic

FEW_KEYS = "[operator]\nkernel = 'python'\nslots = 4\n"
NAMES = ("seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes")


def cache_events(rows=400):
    made = [
        {"event_time": START_US + t_us, "broker": f"b{seed}", **dict(zip(NAMES, rest, strict=False))}
        for seed in (1, 2)
        for t_us, *rest in islice(generate("replay", seed), rows)
    ]
    return sorted(made, key=lambda row: row["event_time"])


def cache_tables(folder, conf, rows, chance=None):
    tables = BufferedTables(folder, OF_CACHE)
    run = LocalCache(conf, tables, lambda _: None, evictions=True, disorder=chance)
    parse = partial(parse_cache_events, settings=InputSettings())
    for part in [rows] if chance is None else cut(rows, chance, 6):
        run.take([parsed(part, parse)] if part else [])
    run.end()
    return tables


def test_cache_metrics_and_evictions_do_not_depend_on_batches(tmp_path):
    conf = conf_of(tmp_path / "conf", FEW_KEYS, {}, **{"headgate.cache.maxBytes": 20_000})
    rows = [*cache_events(), {"event_time": START_US, "seq": None, "broker": "b1", "kind": "add"}]
    whole = cache_tables(tmp_path / "whole", conf, rows)
    assert len(whole.read("cache_evictions")) > 10
    assert len(whole.read("dead_letters")) == 1
    for seed in range(2):
        shuffled = cache_tables(tmp_path / f"{seed}", conf, rows, random.Random(seed))
        for name in ("cache_evictions", "dead_letters"):
            assert in_order(whole.read(name), "offset") == in_order(shuffled.read(name), "offset"), (name, seed)
        assert totals(whole) == totals(shuffled)


def totals(tables):
    """By broker and topic; of a second that a batch's end divides there are two rows."""
    sums = {}
    for row in tables.read("cache_metrics").to_pylist():
        place = row["broker"], row["topic"], row["second"]
        sums[place] = tuple(map(sum, zip(sums.get(place, (0, 0)), (row["hits"], row["misses"]), strict=True)))
    return sums


def protocol_tables(folder, conf, inputs, marks, chance=None):
    tables = BufferedTables(folder, OF_PROTOCOL)
    has = {"has_inputs": bool(inputs), "follows_marks": bool(marks)}
    run = LocalProtocol(conf, tables, lambda _: None, **has, disorder=chance)
    given, marked = ([rows] if chance is None else list(cut(rows, chance, 6)) for rows in (inputs, marks))
    for some, others in zip_longest(given, marked, fillvalue=()):
        of_marks = pa.Table.from_pylist(list(others), MARKS).to_batches()
        run.take([Parsed(pa.Table.from_pylist(list(some), INPUTS), DEAD_LETTERS.empty_table())], of_marks)
    run.end()
    return tables


@pytest.mark.parametrize("clients_speak", [True, False])
def test_decisions_of_the_protocol_do_not_depend_on_batches(tmp_path, clients_speak):
    conf = conf_of(tmp_path / "conf", FEW_KEYS, {})
    given = traffic.inputs(1, 3, 80, 1500) if clients_speak else []
    marks = traffic.marks(2, 3, 30, 1500)
    whole = protocol_tables(tmp_path / "whole", conf, given, marks)
    assert len(whole.read("throttle_decisions")) > 50
    for seed in range(2):
        shuffled = protocol_tables(tmp_path / f"{seed}", conf, given, marks, random.Random(seed))
        for name in ("throttle_decisions", "protocol_dead_letters"):
            assert in_order(whole.read(name)) == in_order(shuffled.read(name)), (name, seed)
