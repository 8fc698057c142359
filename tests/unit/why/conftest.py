"""Outputs of `headgate try` on traces whose culprits are known."""

import json

import pytest

from headgate.cli import main
from unit.local_runs import SECOND_US, SHARED, START_US, write_conf, write_trace

FLOOD, SMALL, OWN, FREE = (f"persistent://{name}/ns/t" for name in ("flood", "small", "own", "free"))
GROUPS = {
    "resourcegroups": {"gold": {"publishRateInMsgs": 40}},
    "tenants": {"flood": "gold", "small": "gold"},
}
POLICIES = {
    "namespaces": {"own/ns": {"publishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}}}
}


def every(per_s, topic, broker="b1", first_s=0, end_s=20, messages=1):
    """Publishes at equal distances."""
    return [
        {
            "event_time": START_US + (first_s * SECOND_US) + place * SECOND_US // per_s,
            "seq": place,
            "broker": broker,
            "kind": "publish",
            "topic": topic,
            "producer": "p",
            "connection": topic,
            "messages": messages,
            "bytes": 10 * messages,
        }
        for place in range((end_s - first_s) * per_s)
    ]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Try rows under a conf: the output."""

    def tried(rows, groups=GROUPS, policies=POLICIES, traffic="offered", text=SHARED, **broker):
        folder = tmp_path_factory.mktemp("why")
        conf = write_conf(folder / "conf", text, groups, **broker)
        (conf / "policies.json").write_text(json.dumps(policies))
        rows = sorted(rows, key=lambda row: (row["event_time"], row["topic"]))
        rows = [row | {"seq": place} for place, row in enumerate(rows)]
        trace = write_trace(folder / "trace.json", rows)
        arguments = ["--conf-dir", str(conf), "--output", str(folder / "out"), "--traffic", traffic]
        assert 0 == main(["try", str(trace), *arguments])
        return str(folder / "out")

    return tried


@pytest.fixture(scope="session")
def output(run):
    """From second 5 on `flood` sends 60/s into a quota of 40/s, `small` always 5/s; `own` 15/s where 10/s may come."""
    rows = [
        *every(20, FLOOD, end_s=5),
        *every(60, FLOOD, first_s=5),
        *every(5, SMALL),
        *every(15, OWN),
        *every(3, FREE),
    ]
    return run(rows)
