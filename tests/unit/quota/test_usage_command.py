"""`headgate usage`: its page says what it prints, the past is told as it was, and what is missing is said."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate.cli import main
from headgate.core.quota.evaluation.step_parameters import Reason
from headgate.quota.tables.topic_tables import output_of
from headgate.quota.usage.parser import instant_ms
from headgate.report.usage.words import REASONS, instant
from headgate.tables.delta import Tables
from headgate.throttle.schemas import MARKS, TOPIC_USAGE
from headgate.throttle.tables import throttle_tables
from unit.quota.places import EPOCH, cut, tables
from unit.quota.usage_scene import AFTER, BEFORE, FIRST, RAISED, SHARED_AT, topic_usage, write_gold, write_scene

PAGE = Path(__file__).parents[3] / "docs" / "usage.md"
TOLD = re.compile(r"```\n(\$ headgate .*?)```", re.DOTALL)
STEP = re.compile(r"^\$ headgate (.*)\n((?:(?!\$ ).*\n)+)", re.MULTILINE)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    write_scene(folder)
    return folder


@pytest.fixture
def usage(scene, capsys):
    """Run `headgate usage` on the scene: its status, and what it printed to either stream."""

    def run(*arguments, output=scene):
        status = main(["usage", str(output), *arguments])
        printed = capsys.readouterr()
        return status, (printed.err if status else printed.out).rstrip("\n")

    return run


@pytest.fixture
def quotas(usage):
    """The quotas of `--json`, by group, class and unit."""

    def run(*arguments, **options):
        status, printed = usage("--json", *arguments, **options)
        assert 0 == status, printed
        return {(one["group"], one["class"], one["unit"]): one for one in json.loads(printed)["quotas"]}

    return run


def test_the_pages_commands_print_what_the_page_says(scene, capsys):
    steps = [step for block in TOLD.findall(PAGE.read_text()) for step in STEP.findall(block)]

    assert {"--by tenant", "--by broker", "--at", "--json"} <= {
        option for option in ("--by tenant", "--by broker", "--at", "--json") for line, _ in steps if option in line
    }
    for line, expected in steps:
        main([str(scene) if word == "OUTPUT" else word for word in shlex.split(line)])
        printed = capsys.readouterr()
        assert expected == (printed.out + printed.err).replace(str(scene), "OUTPUT"), line


def test_a_quota_is_used_by_who_reports_and_is_up(quotas):
    gold = quotas()["gold", "publish", "messages"]

    assert (1500, 1420, 1900, 2) == tuple(gold[name] for name in ("quota", "admitted", "demand", "throttledBrokers"))
    assert {"b-0": False, "b-1": True, "b-2": False} == {one["name"]: one["victim"] for one in gold["brokers"]}
    assert ["target", "gated", "target"] == [one["reason"] for one in gold["brokers"]]


@pytest.mark.parametrize(("epoch", "quota", "brokers"), [(RAISED - 1, 1400, 4), (RAISED, 1500, 4), (EPOCH, 1500, 4)])
def test_the_past_has_the_quota_that_brokers_had_read_by_then(quotas, epoch, quota, brokers):
    gold = quotas("--at", str(epoch * 1000 + 999))["gold", "publish", "messages"]

    assert (quota, brokers) == (gold["quota"], len(gold["brokers"]))


@pytest.mark.parametrize(
    ("epoch", "limits"),
    [(SHARED_AT - 1, BEFORE), (SHARED_AT, BEFORE[:3]), (SHARED_AT + 1, AFTER[:3])],
)
def test_limits_of_the_past_are_those_as_its_epoch_began(quotas, epoch, limits):
    gold = quotas("--at", str(epoch * 1000))["gold", "publish", "messages"]

    assert list(limits) == [one["limit"] for one in gold["brokers"]][: len(limits)]


def test_members_are_as_they_were_where_wall_clock_and_event_time_agree(scene, tmp_path, quotas):
    """Commits of rg_members that are made to lie in the scene's time: b-3 was lost between two of them."""
    folder = shutil.copytree(scene, tmp_path / "live")
    history = sorted(DeltaTable(f"{folder}/rg_members").history(), key=lambda commit: commit["version"])
    log = folder / "rg_members" / "_delta_log"
    for commit, epoch in zip(history, (FIRST, FIRST, EPOCH - 3), strict=True):
        path = log / f"{commit['version']:020d}.json"
        path.write_text(path.read_text().replace(str(commit["timestamp"]), str(epoch * 1000)))

    def names(epoch):
        at = quotas("--at", str(epoch * 1000), output=folder)
        return [one["name"] for one in at["gold", "publish", "messages"]["brokers"]]

    assert (["b-0", "b-1", "b-2", "b-3"], ["b-0", "b-1", "b-2"]) == (names(EPOCH - 4), names(EPOCH - 3))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--group", "silver"], {("silver", "publish", "messages"), ("silver", "dispatch", "messages")}),
        (["--class", "dispatch"], {("silver", "dispatch", "messages")}),
        (["--group", "gold", "--class", "dispatch"], set()),
    ],
)
def test_one_group_and_one_class_can_be_picked(quotas, options, expected):
    whole = quotas()
    picked = quotas(*options)

    assert expected == picked.keys()
    assert {key: whole[key] for key in expected} == picked


def test_a_row_older_than_twice_the_epochs_is_gone_and_the_broker_said_to_be_unheard(usage, tmp_path):
    quota = tables(tmp_path)
    shards = {1: 0}
    quota.members.join(dict.fromkeys("abcdefgh", 1), 1_700_000_000_000)
    quota.usage.append([cut(1, 1, epoch=EPOCH - 80, broker=0), cut(1, epoch=EPOCH, broker=1)], shards)

    assert "a heard 80 epochs ago" in usage("--epochs", "41", output=tmp_path)[1]
    assert "a not heard of lately" in usage("--epochs", "40", output=tmp_path)[1]


def test_reports_that_brokers_left_out_are_looked_for_however_few_epochs_are_shown(usage, tmp_path):
    quota = tables(tmp_path)
    quota.members.join(dict.fromkeys("ab", 1), 1_700_000_000_000)
    quota.usage.append([cut(1, 1, epoch=EPOCH - 5, broker=0), cut(1, 1, epoch=EPOCH, broker=1)], {1: 0})

    rows = usage("--epochs", "1", output=tmp_path)[1].splitlines()
    assert {"a", "b"} <= {row.split()[0] for row in rows if row.startswith("  ")}


def test_names_cannot_command_a_terminal(usage, tmp_path):
    quota = tables(tmp_path)
    quota.members.join({"b\x1b[2J\n": 1}, 1)
    quota.usage.append([cut(1, 5, broker=0)], {5: 0})
    row = {"topic": "persistent://a/n/\x9b2J", "broker": "b", "publishes": 1, "messages": 1, "bytes": 1}
    row |= dict.fromkeys(["throttled_publishes", "throttled_by_topic", "throttled_by_broker", "throttled_by_group"], 0)
    topics = throttle_tables(tmp_path)
    schema = DeltaTable(f"{tmp_path}/topic_usage").schema().to_arrow()
    rows = [dict.fromkeys(pa.schema(schema).names) | row | {"event_time": EPOCH * 1_000_000, "throttled_ns": 0}]
    topics.append("topic_usage", pa.Table.from_pylist(rows, pa.schema(schema)), "test", 0)

    for by, shown in [("group", "b\\x1b[2J\\x0a"), ("broker", "b\\x1b[2J\\x0a"), ("topic", "a/n/\\x9b2J")]:
        status, printed = usage("--by", by, output=tmp_path)
        assert (0, True, set()) == (status, shown in printed, set(printed) & {"\x1b", "\x9b"})


def test_who_has_read_enough_ends_the_command_without_a_word(scene):
    command = [sys.executable, "-m", "headgate", "usage", str(scene), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.close()
        assert b"" == done.stderr.read()


@pytest.mark.parametrize("by", ["tenant", "topic"])
def test_topics_of_jobs_of_one_broker_are_those_of_the_job_of_all(scene, tmp_path, usage, by):
    folder = shutil.copytree(scene, tmp_path / "shared")
    shutil.rmtree(folder / "topic_usage")
    rows = topic_usage()
    for broker in ("b-0", "b-1", "b-2"):
        own = rows.filter(pc.equal(rows["broker"], broker))
        throttle_tables(Path(output_of(str(folder), broker))).append("topic_usage", own, "scene", 0)

    assert usage("--by", by) == usage("--by", by, output=folder)


@pytest.mark.parametrize(
    ("behind_s", "msg_per_s"),
    [((0, 0), "8"), ((0, 2), "8"), ((0, 11), "5")],  # a job that is far behind is not waited for
)
def test_of_live_jobs_of_one_broker_a_second_is_shown_that_all_of_them_are_through_with(
    tmp_path, usage, behind_s, msg_per_s
):
    now = datetime.now(UTC).replace(microsecond=0)
    for broker, behind in zip(("b1", "b2"), behind_s, strict=True):
        rows = [
            second_of("acme", 0, 4 if at < 0 else 1, 0)
            | {"broker": broker, "event_time": now + timedelta(seconds=at - behind)}
            | {"messages": {"b1": 5, "b2": 3}[broker] if at < 0 else 1}
            for at in range(-30, 1)
        ]
        table = throttle_tables(Path(output_of(str(tmp_path), broker)))
        table.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "scene", 0)

    (line,) = (line for line in usage("--epochs", "1", output=tmp_path)[1].splitlines() if line.startswith("acme"))
    assert line.split()[2] == msg_per_s


def test_who_is_held_all_the_time_is_told_by_the_limiter_that_marked_him_last(tmp_path, usage):
    """A large publish on debt: nobody is let in, and nobody is marked anew."""
    at = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    offered = {"admitted_publishes": 0, "failed_publishes": 0, "delayed_publishes": 0, "failed_messages": 0}
    offered |= {"admitted_messages": 0, "admitted_bytes": 0, "failed_bytes": 0}
    large = {"bytes": 900, "admitted_bytes": 900, "admitted_messages": 9, "admitted_publishes": 9}
    rows = [
        second_of("acme", 0, 9, 1) | offered | large | {"throttled_by_broker": 1},
        second_of("else", 0, 5, 0) | offered | {"bytes": 5},
        *(second_of(name, 1, 5, 0) | offered | {"bytes": 5, "throttled_ns": 10**9} for name in ("acme", "else")),
    ]
    marks = [
        {"topic": f"persistent://{name}/n/t", "broker": "b", "action": "mark", "event_time": at + timedelta(seconds=s)}
        | {"scope": scope, "limiter": limiter, "bytes_balance": -800, "messages_balance": 1, "bytes_per_s": per_s}
        for name in ("acme", "else")
        for s, scope, limiter, per_s in ((-1, "topic", f"persistent://{name}/n/t", 1000), (0, "broker", "b", 100))
    ]
    tables_ = throttle_tables(tmp_path)
    tables_.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "scene", 0)
    tables_.append("marks", pa.Table.from_pylist(marks, MARKS), "scene", 0)

    printed = usage("--by", "tenant", "--epochs", "1", "--at", "2026-03-01T09:00:01Z", output=tmp_path)[1]
    assert "\nAT FAULT: acme\nVICTIMS: else\n" in printed
    assert [line.split("  ")[-1] for line in printed.splitlines() if "all waits" in line] == [
        "has 100% of the excess bytes of broker b",
        "VICTIM: acme 100% of the excess bytes of broker b",
    ]


def test_an_overload_of_an_hour_is_followed_to_what_was_usual_before_it(tmp_path, usage):
    """The other one always sent more; it would be at fault if the overload were taken to begin a while ago."""
    held = [at >= 60 for at in range(3600)]
    rows = [
        second_of(name, at, amount + grown * is_held, int(is_held))
        | {"throttled_by_topic": 0}
        | {"throttled_by_broker": int(is_held)}
        for at, is_held in enumerate(held)
        for name, amount, grown in (("steady", 85, 0), ("grows", 5, 40))
    ]
    mark = {"topic": "persistent://grows/n/t", "broker": "b", "action": "mark", "scope": "broker", "limiter": "b"}
    mark |= {"messages_balance": -1, "messages_per_s": 100, "event_time": rows[-1]["event_time"]}
    tables_ = throttle_tables(tmp_path)
    tables_.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "scene", 0)
    tables_.append("marks", pa.Table.from_pylist([mark], MARKS), "scene", 0)

    printed = usage("--by", "tenant", "--epochs", "1", "--at", "2026-03-01T09:59:59Z", output=tmp_path)[1]
    assert "\nAT FAULT: grows\nVICTIMS: steady\n" in printed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--group", "no"], "rg_groups has no group 'no'; there are: gold, silver"),
        (["--at", "2026-03-01T12:00:00Z"], "rg_usage has no rows of the 60 epochs up to 2026-03-01T12:00:00Z; it has"),
        (["--at", "1000"], "rg_usage has no rows of the 60 epochs up to 1970-01-01T00:00:01Z"),
        (["--by", "tenant", "--at", "1000"], "topic_usage has no rows of the 30 s up to 1970-01-01"),
        (["--by", "tenant", "--class", "dispatch"], "topic_usage has publishes alone; leave out --class dispatch"),
    ],
)
def test_what_the_tables_cannot_tell_is_one_line_and_status_2(usage, options, expected):
    status, printed = usage(*options)

    assert (2, 1) == (status, len(printed.splitlines()))
    assert expected in printed


@pytest.mark.parametrize("by", ["group", "broker", "tenant", "topic"])
def test_missing_and_empty_tables_are_one_line_and_status_2(usage, tmp_path, by):
    status, printed = usage("--by", by, output=tmp_path / "no")
    assert (2, True) == (
        status,
        "start a job that shares quotas with this output once, which creates its tables" in printed,
    )

    tables(tmp_path)
    throttle_tables(tmp_path)
    status, printed = usage("--by", by, output=tmp_path)
    assert (2, 1) == (status, len(printed.splitlines()))
    assert "has no rows: " in printed


def test_a_table_whose_files_are_gone_is_one_line_and_status_2(usage, scene, tmp_path):
    folder = shutil.copytree(scene, tmp_path / "gone")
    for file in (folder / "rg_usage").rglob("*.parquet"):
        file.unlink()

    status, printed = usage(output=folder)
    assert (2, 1) == (status, len(printed.splitlines()))
    assert "rg_usage cannot be read: " in printed


@pytest.mark.usefixtures("no_store")
def test_a_table_on_a_store_that_is_away_is_one_line_and_status_1(usage, scene):
    status, printed = usage("--usage-table", "s3a://b/o/rg_usage")
    assert (1, 1) == (status, len(printed.splitlines()))
    assert "the table s3a://b/o/rg_usage cannot be read: " in printed


def test_a_table_without_epoch_length_is_refused(usage, scene, tmp_path):
    folder = shutil.copytree(scene, tmp_path / "other")
    old = DeltaTable(f"{folder}/rg_usage")
    schema, partitions = old.schema(), old.metadata().partition_columns
    shutil.rmtree(folder / "rg_usage")
    DeltaTable.create(f"{folder}/rg_usage", schema=schema, partition_by=partitions)

    assert "has None as table property headgate.epochMillis" in usage(output=folder)[1]


def test_a_reason_that_this_version_does_not_know_is_refused(usage, scene, tmp_path):
    folder = shutil.copytree(scene, tmp_path / "newer")
    limits = DeltaTable(f"{folder}/rg_limits")
    row = dict.fromkeys(pa.schema(limits.schema().to_arrow()).names, 0) | {"reason": "whim", "epoch": EPOCH}
    write_deltalake(limits, pa.Table.from_pylist([row], pa.schema(limits.schema().to_arrow())), mode="append")

    assert "rg_limits has the reason 'whim'; allowed: unset, blocked" in usage(output=folder)[1]


def test_every_reason_has_words():
    assert set(Reason) == REASONS.keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1772366407000", 1_772_366_407_000),
        ("2026-03-01T12:00:07Z", 1_772_366_407_000),
        ("2026-03-01T13:00:07.250+01:00", 1_772_366_407_250),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601(text, expected):
    assert expected == instant_ms(text)


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--at", text] for text in ("2026-03-01T12:00:07", "yesterday", "-1", "253402300800000")),
        ["--at", "1969-12-31T00:00:00Z"],
        *(["--epochs", text] for text in ("0", "x", "100001")),
        ["--top", "0"],
    ],
)
def test_an_argument_that_means_nothing_is_refused(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(["usage", "out", "=".join(arguments)])
    assert 2 == ended.value.code
    assert "allowed: " in capsys.readouterr().err


def test_the_span_of_what_there_is_is_told_to_the_epoch(usage):
    status, printed = usage("--at", str((EPOCH + 3600) * 1000))

    assert 2 == status
    assert f"it has rows of {instant(FIRST * 1000)} to {instant(EPOCH * 1000)}; give" in printed


def test_who_is_not_heard_may_be_throttled_and_of_nobody_up_the_past_is_told(usage, tmp_path):
    quota = tables(tmp_path)
    lives = quota.members.join({"a": 1, "b": 1}, 1_700_000_000_000)
    quota.usage.append([cut(1, epoch=EPOCH - 9, broker=0), cut(1, epoch=EPOCH, broker=1)], {})
    write_gold(quota.config)

    assert "No quota is known to throttle anybody now (1 quota): a may be throttled." in usage(output=tmp_path)[1]
    quota.members.leave({row.broker_id: row.incarnation for row in lives.values()})
    told = f"No broker is up, so nothing is used (1 quota). --at TIME tells of a time before {instant(EPOCH * 1000)}."
    assert told in usage(output=tmp_path)[1]


def second_of(topic, at, publishes, throttled, failed=None):
    counts = {"publishes": publishes, "messages": publishes, "bytes": publishes, "throttled_publishes": throttled}
    counts |= {"failed_publishes": failed, "throttled_by_topic": throttled, "throttled_ns": throttled}
    zeros = dict.fromkeys(("throttled_by_broker", "throttled_by_group"), 0)
    event_time = datetime(2026, 3, 1, 9, 0, tzinfo=UTC) + timedelta(seconds=at)
    return {"event_time": event_time, "broker": "b", "topic": f"persistent://{topic}/n/t"} | counts | zeros


@pytest.mark.parametrize(
    ("rows", "arguments", "worst"),
    [
        ([("a", 0, 9, 1), ("a", 50, 9, 3), ("a", 99, 9, 0)], [], "worst 30 s, up to 2026-03-01T09:00:50Z"),
        ([("a", 0, 9, 3), ("a", 20, 9, 3), ("a", 60, 9, 5)], [], "worst 30 s, up to 2026-03-01T09:00:20Z"),
        (
            [("a", 0, 9, 3), ("a", 20, 9, 3), ("a", 60, 9, 5)],
            ["--epochs", "9"],
            "worst 9 s, up to 2026-03-01T09:01:00Z",
        ),
        ([("a", 0, 9, 3, 0), ("a", 60, 9, 0, 4)], [], "worst 30 s, up to 2026-03-01T09:01:00Z"),
        ([("a", 0, 9, 0), ("b", 60, 5, 0), ("a", 60, 5, 0)], [], "busiest 30 s, up to 2026-03-01T09:01:00Z, as no"),
    ],
)
def test_without_groups_tenants_are_shown_and_of_traffic_that_is_over_the_worst_time(
    usage, tmp_path, rows, arguments, worst
):
    table = Tables(tmp_path, {"topic_usage": TOPIC_USAGE})
    table.append("topic_usage", pa.Table.from_pylist([second_of(*row) for row in rows], TOPIC_USAGE), "query", 0)
    status, printed = usage(*arguments, output=tmp_path)
    lines = printed.splitlines()
    assert status == 0
    assert lines[0].startswith("No job runs on this traffic now, which is of 2026-03-01T09:00:00Z to ")
    assert worst in lines[0]
    assert any(line.startswith("TENANT") for line in lines)


def test_of_shared_quotas_that_nobody_uses_any_more_the_worst_time_is_shown(usage, scene, tmp_path):
    folder = shutil.copytree(scene, tmp_path / "over")
    rows = DeltaTable(f"{folder}/rg_members").to_pyarrow_table().to_pylist()
    tables(folder).members.leave({row["broker_id"]: row["incarnation"] for row in rows})
    for by in ("group", "tenant", "broker"):
        printed = usage("--by", by, output=folder)[1]
        assert printed.startswith("No job runs on this traffic now, which is of 2024-10-03T23:5"), by
    assert "\nTHROTTLED THEN: " in usage(output=folder)[1]
