"""The throttle job's screen: golden lines with fake clocks, on a terminal and in a log."""

import io
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf.resource_groups import ResourceGroups
from headgate.core.quota.groups import Dimension
from headgate.quota.usage.share_courses import BrokerCourse, QuotaCourse
from headgate.report.bad_rows import Problem
from headgate.report.next_steps import QUESTION
from headgate.report.screen import terminal_console
from headgate.report.throttle_screen import Ended, ThrottleScreen
from headgate.report.throttling.blame import throttling
from headgate.throttle.schemas import (
    DISPATCH_DECISIONS,
    MARKS,
    PROGRESS,
    SUBSCRIBE_DECISIONS,
    TOPIC_USAGE,
    UNLOAD_OUTCOMES,
)
from unit.report.empty_tables import empty_tables

NOW = datetime(2026, 3, 1, 12, 0, 10, tzinfo=UTC)
NOW_US = int(NOW.timestamp()) * 1_000_000
TOPIC = "persistent://acme/n/a[b]:fire:"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in (
        "HEADGATE_TERMINAL",
        "HEADGATE_COMMAND",
        "COLUMNS",
        "FORCE_COLOR",
        "NO_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def screen_of(*clock_s, terminal, width=150):
    """A screen whose clock reads `clock_s` one after another, and what it wrote so far."""
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=width, color_system=None, highlight=False, markup=False, emoji=False
    )
    clock = iter([0, *clock_s])
    return ThrottleScreen(console, clock=lambda: next(clock), now=lambda: NOW), file


def batch(batch_id=7, rows=120_000, late=0, dead_letters=2, event_time_us=NOW_US - 2_500_000, progress=()):
    return SimpleNamespace(
        batch_id=batch_id,
        rows=rows,
        late=late,
        dead_letters=dead_letters,
        event_time_us=event_time_us,
        progress=pa.Table.from_pylist(progress, PROGRESS),
    )


def test_a_live_job_names_brokers_with_wrong_clocks_and_a_run_of_recorded_rows_does_not():
    ahead = [{"broker": "b", "rows": 1, "late": 0, "event_time_us": NOW_US + 3_600_000_000}]
    screen, file = screen_of(1.5, terminal=True)
    screen.batch(batch(progress=ahead), 0)
    assert "throttle: b is 3,600 s ahead of the clock here" in file.getvalue()

    recorded = io.StringIO()
    ThrottleScreen(terminal_console(recorded), lambda: 0.0, lambda: NOW, recorded=True).batch(batch(progress=ahead), 0)
    assert "ahead" not in recorded.getvalue()


def test_a_terminal_gets_a_line_to_read():
    screen, file = screen_of(1.5, terminal=True)
    screen.batch(batch(), 1234)

    assert file.getvalue() == (
        "batch 7  rows 120,000  rows/s 80,000  dead letters 2  event time 2026-03-01T12:00:07Z(lag=2.5s)  "
        "throttled now 1,234\n"
    )


def test_a_log_gets_a_line_of_names_and_values_with_the_time():
    screen, file = screen_of(1.5, terminal=False)
    screen.batch(batch(), 1234)

    assert file.getvalue() == (
        "2026-03-01T12:00:10Z batch=7 rows=120000 rows/s=80000 dead_letters=2 "
        "event_time=2026-03-01T12:00:07Z(lag=2.5s) throttled_now=1234\n"
    )


def test_late_rows_are_shown_where_there_are_any():
    screen, file = screen_of(1.5, terminal=False)
    screen.batch(batch(late=1234), 0)

    assert " rows/s=80000 late=1234 dead_letters=2 " in file.getvalue()


@pytest.mark.parametrize(
    ("event_time_us", "shown"),
    [
        (NOW_US, "2026-03-01T12:00:10Z(lag=0.0s)"),
        (NOW_US + 1_000_000, "2026-03-01T12:00:11Z(lag=-1.0s)"),
        (NOW_US - 86_399_000_000, "2026-02-28T12:00:11Z(lag=86399.0s)"),
        (NOW_US - 86_400_000_000, "2026-02-28T12:00:10Z(recorded)"),
        (NOW_US + 86_400_000_000, "2026-03-02T12:00:10Z(ahead)"),
        (None, "none"),
    ],
)
def test_lag_is_shown_where_traffic_is_near_the_clock(event_time_us, shown):
    screen, file = screen_of(1, terminal=False)
    screen.batch(batch(event_time_us=event_time_us), 0)

    assert f" event_time={shown} " in file.getvalue()


def test_a_run_that_ends_with_its_input_has_no_lag():
    file = io.StringIO()
    screen = ThrottleScreen(terminal_console(file), lambda: 0.0, lambda: NOW, recorded=True)
    screen.batch(batch(), 0)

    assert " event_time=2026-03-01T12:00:07Z throttled_now=0" in file.getvalue()


def test_a_batch_after_two_idle_minutes_has_no_rate():
    screen, file = screen_of(1, 121, 241.5, 242, terminal=False)
    for _ in range(4):
        screen.batch(batch(rows=6000, dead_letters=0), 0)

    words = [line.split()[1:4] for line in file.getvalue().splitlines()]
    assert [
        ["batch=7", "rows=6000", rate] for rate in ("rows/s=6000", "rows/s=50", "dead_letters=0", "rows/s=12000")
    ] == words


def test_rates_are_of_the_time_since_the_last_batch_also_a_silent_one():
    screen, file = screen_of(1, 5, 7, 7, terminal=False)
    for rows in (1000, 0, 1000, 1000):
        screen.batch(batch(rows=rows, dead_letters=0), 0)

    assert ["1000", "500", "1000000"] == [line.split("rows/s=")[1].split()[0] for line in file.getvalue().splitlines()]


@pytest.mark.parametrize(("rows", "dead_letters", "lines"), [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_a_batch_without_traffic_and_bad_rows_is_silent(rows, dead_letters, lines):
    screen, file = screen_of(1, terminal=False)
    screen.batch(batch(rows=rows, dead_letters=dead_letters), 0)

    assert lines == len(file.getvalue().splitlines())


def test_lines_are_never_broken_and_say_what_they_are_given():
    screen, file = screen_of(terminal=True)
    screen.say("x" * 250)
    screen.say("[b] :fire: [/nothing]")

    assert f"{'x' * 250}\n[b] :fire: [/nothing]\n" == file.getvalue()


def ended(tables, output="out"):
    return Ended(
        tables,
        throttling(tables, ResourceGroups(tenants={"acme": "gold"})),
        "traffic = admitted: as brokers let it in",
        output,
    )


def usage_row(topic=TOPIC, at=NOW, **counts):
    sent = {"broker": "b-1", "publishes": 1, "messages": 1, "bytes": 1, "throttled_publishes": 1, "throttled_ns": 1}
    return {"event_time": at, "topic": topic} | sent | counts


def fill(tables, publishes, throttled, throttled_ns=1_250_000_000):
    usage = usage_row(publishes=publishes, throttled_publishes=throttled, throttled_ns=throttled_ns * bool(throttled))
    marks = [{"event_time": NOW, "topic": TOPIC, "scope": "group", "limiter": "gold", "action": "mark"}] * throttled
    tables.append("topic_usage", pa.Table.from_pylist([usage], TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_end_says_who_was_throttled_and_by_what_and_where_to_look(tmp_path, terminal):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 500)
    screen, file = screen_of(1, 62.25, terminal=terminal)
    screen.batch(batch(rows=2000), 0)
    screen.end(ended(tables))

    assert [line.rstrip() for line in file.getvalue().splitlines()[1:]] == [
        "",
        "2,000 rows in 62.2 s, 2 dead letters",
        "traffic = admitted: as brokers let it in",
        "",
        "Who was throttled (1 of 1 tenants), when, by which limiter, and by whose fault",
        (
            "acme: from 12:00:09 to 12:00:10, worst 12:00:10, by group gold (messages); its own fault: "
            f"100% of the excess messages, most held: {TOPIC}"
        ),
        (
            "Percentages are of the excess (what had come above a fair share of the limiter and was not worked off "
            "yet), added up over the seconds in which the tenant was held; "
            "headgate usage out --by tenant --epochs 1 --at TIME has those of one second"
        ),
        "",
        "Throttled tenants",
        "tenant  publishes  throttled  share  held for  limiter to blame",
        "acme        2,000        500  25.0%     1.2 s  group gold (messages)",
        "Only the producer of a publish waits here; brokers stop its whole connection: jobs/connections.py",
        "held for: a sum over topics and brokers, which can exceed the 1 s of traffic",
        "",
        "Most throttled topics",
        "topic                           publishes  throttled  share  held for  from      to        limiter to blame",
        f"{TOPIC}      2,000        500  25.0%     1.2 s  12:00:10  12:00:10  group gold (messages)",
        "",
        (
            "Tables (Delta): out/marks  topic_usage  dispatch_decisions  subscribe_decisions  unloads  dead_letters  "
            "batches  control"
        ),
        "",
        "What to run next, about acme: who used what at its worst second, and acme's topics",
        "  headgate usage out --by tenant --epochs 1 --at 2026-03-01T12:00:10Z",
        (
            '  headgate sql out "SELECT topic, sum(messages) AS messages, sum(bytes) AS bytes, '
            "sum(publishes) AS publishes, sum(throttled_publishes) AS throttled, sum(failed_publishes) AS failed "
            "FROM topic_usage WHERE tenant = 'acme' AND event_time BETWEEN "
            "'2026-03-01T12:00:10Z' AND '2026-03-01T12:00:10Z' GROUP BY topic ORDER BY throttled DESC\""
        ),
        f"and why {TOPIC} was held, and what would have helped",
        f"  headgate why '{TOPIC}' out --from 2026-03-01T12:00:10Z --to 2026-03-01T12:00:10Z",
    ]


def test_the_end_of_a_run_without_throttling_says_so(tmp_path):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 0)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables))

    assert "\nNo publish was throttled: no limit was reached.\n" in file.getvalue()
    assert "Throttled tenants" not in file.getvalue()
    assert file.getvalue().splitlines()[-1] == f'Try: headgate sql out "{QUESTION}"'


def test_the_end_of_a_run_that_took_nothing_in_speaks_of_no_limit(tmp_path):
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(empty_tables(tmp_path)))

    assert "\nNo publish is in the tables yet.\n" in file.getvalue()


def test_line_breaks_and_commands_to_terminals_in_names_are_spelled_out(tmp_path):
    tables = empty_tables(tmp_path)
    row = usage_row("persistent://acme/n/a\nb\x1b[2J")
    tables.append("topic_usage", pa.Table.from_pylist([row], TOPIC_USAGE), "query", 0)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables))

    assert r"persistent://acme/n/a\x0ab\x1b[2J" in file.getvalue()


def test_long_names_are_folded_and_no_row_is_lost(tmp_path):
    tables = empty_tables(tmp_path)
    names = [f"persistent://acme/n/{'long' * 40}-{i}" for i in range(12)]
    rows = [usage_row(name) for name in names]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    screen, file = screen_of(1, terminal=True, width=120)
    screen.end(ended(tables))
    _, header, *lines = file.getvalue().split("Most throttled topics")[1].split("Tables")[0].splitlines()

    assert max(len(line) for line in lines) <= 120
    names = "".join(line[: header.index("publishes")] for line in lines)
    assert 8 * 40 == names.count("g"), names
    assert lines[-2].strip() == "and 4 more topics"


def test_what_to_run_next_is_about_who_has_most_of_the_excess_and_a_victim_has_a_command_of_its_own(tmp_path):
    tables = empty_tables(tmp_path)
    often, victim, free = (TOPIC.replace("acme", name) for name in ("often", "small", "free"))
    rows = [
        usage_row(messages=900, throttled_publishes=9),
        usage_row(often, messages=300, throttled_publishes=20),
        usage_row(victim, NOW + timedelta(seconds=5), messages=10),
        usage_row(victim, NOW + timedelta(seconds=6), messages=10, throttled_publishes=20),
        usage_row(free, throttled_publishes=0, throttled_ns=0),
    ]
    marks = [
        {"event_time": NOW, "topic": topic, "scope": "broker", "limiter": "b-1", "action": "mark", "broker": "b-1"}
        for topic in (TOPIC, often, victim)
    ]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    tables.append("marks", pa.Table.from_pylist(marks, MARKS), "query", 0)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables))
    lines = file.getvalue().splitlines()

    assert "Who was throttled (3 of 4 tenants), when, by which limiter, and by whose fault" in lines
    assert "Never throttled: free" in lines
    next_ = "What to run next, about acme: who used what when acme sent most above its share, and acme's topics"
    assert next_ in lines
    assert lines[-4:-2] == [
        "and about small, a victim: who used what small lacked at its worst second",
        "  headgate usage out --by tenant --epochs 1 --at 2026-03-01T12:00:16Z",
    ]
    assert lines[-1].startswith(f"  headgate why '{victim}' out --from 2026-03-01T12:00:15Z")


@pytest.mark.parametrize(
    ("settings", "is_terminal", "width"),
    [
        ({}, False, 250),
        ({"COLUMNS": "77"}, False, 77),
        ({"COLUMNS": "wide"}, False, 250),
        ({"HEADGATE_TERMINAL": "1", "COLUMNS": "77"}, True, 77),
        ({"HEADGATE_TERMINAL": "0"}, False, 250),
    ],
)
def test_the_console_is_a_terminals_where_the_starter_says_so(monkeypatch, settings, is_terminal, width):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    console = terminal_console(io.StringIO())

    assert (is_terminal, width) == (console.is_terminal, console.width)


def test_the_console_takes_no_name_for_markup():
    file = io.StringIO()
    console = terminal_console(file)
    console.print(TOPIC, 1)

    assert f"{TOPIC} 1\n" == file.getvalue()


def course(group, *shares):
    brokers = (BrokerCourse(f"b-{n}", [10, None, 400], list(of_broker)) for n, of_broker in enumerate(shares))
    return QuotaCourse(group, Dimension.MESSAGES, 400, 60.0, tuple(brokers))


def test_the_end_shows_how_shares_followed_where_they_moved(tmp_path):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 0)
    screen, file = screen_of(1, terminal=False)
    courses = [course("gold", (400, 40, None), (0, 360, 360)), course("new", (None, None, None), (50, 100, 100))]
    screen.end(ended(tables), [*courses, course("calm", (100, 90, 120))])
    lines = [line.split() for line in file.getvalue().splitlines()]

    assert "How shares of quotas followed the traffic, in all 60 s, per second" in file.getvalue()
    assert ["gold", "400", "messages", "b-0", "▁", "█", "█▁", "40", "400", "40"] in lines
    assert ["b-1", "▁", "█", "▁▇▇", "0", "360", "360"] in lines
    assert ["new", "400", "messages", "b-0", "▁", "█"] in lines
    assert not any("calm" in line for line in lines)


def test_the_end_says_where_the_tables_of_groups_are_that_jobs_of_one_broker_share(tmp_path):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 500)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables, "out/brokers/b-0"), [course("gold", (400, 40), (0, 360))], "out")

    assert "Tables (Delta): out/brokers/b-0/marks  " in file.getvalue()
    assert "of shared quotas: out/rg_usage  " in file.getvalue()
    assert "  headgate usage out --by tenant" in file.getvalue()


def test_offered_traffic_has_columns_of_what_was_delayed_and_failed(tmp_path):
    tables = empty_tables(tmp_path)
    counts = {
        "publishes": 20,
        "throttled_publishes": 5,
        "throttled_ns": 0,
        "delayed_publishes": 4,
        "delay_ns": 2_000_000_000,
        "failed_publishes": 1,
    }
    tables.append("topic_usage", pa.Table.from_pylist([usage_row(**counts)], TOPIC_USAGE), "query", 0)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables))

    assert "acme           20       1        4       0.5 s  25.0%          5     0.0 s  none" in file.getvalue()


@pytest.mark.parametrize(("rows", "is_said"), [(2000, False), (1999, True)])
def test_tables_of_earlier_runs_too_are_said_to_be_so(tmp_path, rows, is_said):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 500)
    screen, file = screen_of(1, 2, terminal=False)
    screen.batch(batch(rows=rows), 0)
    screen.end(ended(tables))

    assert is_said == ("\nWhat follows is of all runs on this output.\n" in file.getvalue())


@pytest.mark.parametrize(
    ("refused", "shown"),
    [
        (0, ["2 attempts to subscribe, none of them refused."]),
        (3, ["5 attempts to subscribe, 3 of them refused.", "Most refused consumers", "c host 5 3 60.0% 1"]),
    ],
)
def test_the_end_says_whose_attempts_to_subscribe_were_refused(tmp_path, refused, shown):
    tables = empty_tables(tmp_path)
    rows = [{"consumer": "c", "client": "host", "topic": TOPIC, "allowed": n < 2} for n in range(2 + refused)]
    tables.append("subscribe_decisions", pa.Table.from_pylist(rows, SUBSCRIBE_DECISIONS), "query", 0)
    screen, file = screen_of(1.0, terminal=False)
    screen.end(ended(tables))

    lines = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    assert set(shown) <= set(lines)


@pytest.mark.parametrize(
    ("held", "shown"), [(0, []), (3, ["b-1 t s 12 3 25.0% 3 2026-03-01 12:00:10 2026-03-01 12:00:10 group"])]
)
def test_the_end_says_which_subscriptions_were_held_back_most_if_any_was(tmp_path, held, shown):
    tables = empty_tables(tmp_path)
    row = {"broker": "b-1", "topic": "t", "subscription": "s", "reads": 12, "allowed_reads": 9, "held_by_group": held}
    row |= {"event_time": NOW}
    row |= dict.fromkeys(("held_by_broker", "held_by_topic", "held_by_subscription"), 0)
    tables.append("dispatch_decisions", pa.Table.from_pylist([row], DISPATCH_DECISIONS), "query", 0)
    screen, file = screen_of(1.0, terminal=False)
    screen.end(ended(tables))

    lines = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    assert shown == [line for line in lines if line.startswith("b-1")]
    assert bool(shown) == ("Subscriptions whose dispatches were held back most" in lines)


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["done"], "1 unload of bundles, none timed out; the longest wait was 1.2 s, the last end is at "),
        (
            ["done", "timed_out", "timed_out"],
            "3 unloads of bundles, 2 timed out; the longest wait was 1.2 s, the last end is at ",
        ),
    ],
)
def test_the_end_says_how_unloads_went(tmp_path, outcomes, said):
    tables = empty_tables(tmp_path)
    rows = [{"outcome": outcome, "waited_ns": 1_234_567_890, "end_time": NOW} for outcome in outcomes]
    tables.append("unloads", pa.Table.from_pylist(rows, UNLOAD_OUTCOMES), "query", 0)
    screen, file = screen_of(1.0, terminal=False)
    screen.end(ended(tables))

    assert f"{said}2026-03-01T12:00:10Z." in file.getvalue().splitlines()


def test_the_end_is_silent_about_unloads_where_there_are_none(tmp_path):
    screen, file = screen_of(1.0, terminal=False)
    screen.end(ended(empty_tables(tmp_path)))

    assert "unloads of bundles" not in file.getvalue()


@pytest.mark.parametrize(
    ("rows", "dead_letters", "has_rows", "limits_changed", "said"),
    [
        (1, 0, True, True, None),
        (0, 0, True, False, None),
        (0, 0, False, False, "Nothing is in IN: give an input with rows, in the right --format"),
        (0, 2, True, False, "  2 x no JSON"),
        (
            0,
            0,
            True,
            True,
            "The conf files have changed, and IN has nothing new: the tables under out are of the limits",
        ),
    ],
)
def test_a_start_in_vain_says_why_and_shows_no_figure(tmp_path, rows, dead_letters, has_rows, limits_changed, said):
    tables = empty_tables(tmp_path)
    fill(tables, 2000, 500)
    letters = [{"reason": "no JSON", "raw": "x"}] * dead_letters
    tables.append("dead_letters", pa.Table.from_pylist(letters, DEAD_LETTERS), "query", 0)
    screen, file = screen_of(1, terminal=False)
    screen.batch(batch(rows=rows, dead_letters=dead_letters), 0)
    told = screen.in_vain(ended(tables), "IN", "new", has_rows=has_rows, limits_changed=limits_changed)
    lines = file.getvalue().splitlines()[bool(rows or dead_letters) :]
    assert told == (said is not None)
    assert told == any(line.startswith(said or "nothing") for line in lines)
    assert (told and has_rows and limits_changed) == any(" try IN --conf-dir new; " in line for line in lines)
    assert not any("acme" in line for line in lines)


def test_times_have_their_date_where_the_traffic_has_more_than_one(tmp_path):
    tables = empty_tables(tmp_path)
    rows = [usage_row(), usage_row(at=NOW.replace(day=2))]
    tables.append("topic_usage", pa.Table.from_pylist(rows, TOPIC_USAGE), "query", 0)
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(tables))

    assert "2026-03-01 12:00:10" in file.getvalue()
    assert "2026-03-02 12:00:10" in file.getvalue()


def test_the_command_is_named_as_it_was_called(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADGATE_COMMAND", "/opt/headgate/headgate")
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(empty_tables(tmp_path)))

    assert 'Try: /opt/headgate/headgate sql out "' in file.getvalue()


def test_commands_are_quoted_for_a_shell(tmp_path):
    screen, file = screen_of(1, terminal=False)
    screen.end(ended(empty_tables(tmp_path), "s3a://quotas/odd job/mü=1%x"))
    screen.bad_rows([Problem(2, "not JSON", "{")], "a b")

    said = file.getvalue()
    assert """Try: headgate sql 's3a://quotas/odd job/mü=1%x' "SELECT""" in said
    assert """all of them: headgate sql 'a b' "SELECT""" in said
