"""Small traces, conf folders, and keys replayed by hand."""

import json
from functools import cache

import pyarrow as pa

from headgate.conf import load_conf
from headgate.replay.plan import Keys, plan_of
from headgate.replay.run import KeyRun, Trace
from headgate.throttle.array_form import run_arrays
from headgate.throttle.schemas import EVENTS

SECOND_US = 1_000_000
START_US = 1_767_603_600 * SECOND_US
GOLD = {"resourcegroups": {"gold": {"publishRateInMsgs": 100}}, "tenants": {"acme": "gold"}}


def topic(name, tenant="acme"):
    return f"persistent://{tenant}/shop/{name}"


def publish(second, broker="a", *, name=None, tenant="acme", messages=5, bytes_=1, producer="p", seq=0):
    """A row of schemas.EVENTS so many seconds after the start; its topic is named after the broker."""
    return {
        "event_time_us": START_US + round(second * SECOND_US),
        "seq": seq,
        "broker": broker,
        "topic": topic(name or broker, tenant),
        "producer": f"{producer}-{broker}",
        "connection": "c",
        "messages": messages,
        "bytes": bytes_,
    }


def steady(broker, per_s, first_s, last_s, **values):
    """So many publishes a second, evenly."""
    count = round((last_s - first_s) * per_s)
    return [publish(first_s + (i + 0.5) / per_s, broker, **values) for i in range(count)]


def events(*parts):
    rows = [row for part in parts for row in part]
    return pa.Table.from_pylist(rows, EVENTS).sort_by("event_time_us")


def trace_of(table):
    times = table["event_time_us"].to_pylist()
    return Trace(tuple(sorted(set(table["broker"].to_pylist()))), min(times), max(times))


def conf_in(folder, *, settings="", broker=(), policies=None, groups=GOLD):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headgate.toml").write_text(settings)
    (folder / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in dict(broker).items()))
    (folder / "policies.json").write_text(json.dumps(policies or {}))
    (folder / "resource-groups.json").write_text(json.dumps(groups))
    return load_conf(folder)


def plan_in(folder, *, traffic="offered", delay_ms=0, **files):
    return plan_of(folder.name, conf_in(folder, **files), traffic=traffic, delay_ms=delay_ms)


def cut_in(table, rows):
    """The table in parts of so many rows."""
    return [table.slice(start, rows) for start in range(0, len(table), rows)]


def replayed(plan, table, *, form=run_arrays, rows=10_000, key=None, trace=None):
    """What came out of every key, or one, by kind: rows as dictionaries, in a fixed order."""
    out = {}
    trace = trace or trace_of(table)
    keys = Keys(plan).of(table)
    for name in sorted(keys.dictionary.to_pylist()) if key is None else [key]:
        mine = table.filter(pa.compute.equal(keys.cast(pa.string()), name))
        run = KeyRun(name, plan, trace, form, lambda kind, part: out.setdefault(kind, []).extend(part.to_pylist()))
        for part in cut_in(mine, rows):
            run.take(part)
        run.end()
    return {kind: sorted(found, key=repr) for kind, found in out.items()}


def limits(out):
    """The limits told, in messages, by second after the start and broker."""
    told = {}
    for row in out["replay_limits"]:
        second = (row["event_time"].timestamp() * SECOND_US - START_US) / SECOND_US
        told.setdefault(second, {})[row["broker"]] = row["limit_msgs"]
    return dict(sorted(told.items()))


def total(out, column, kind="tenants"):
    return sum(row[column] for row in out.get(kind, ()))


@cache
def moving():
    """Acme wants 20 messages/s of a and 90 of b, from second 8 on the other way round."""
    return events(steady("a", 4, 0, 8), steady("b", 18, 0, 8), steady("a", 18, 8, 16), steady("b", 4, 8, 16))
