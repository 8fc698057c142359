"""headgate try, run by run: what is shown of one conf, of several, after an edit, and after a stop."""

import io
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.engines.stops import Stop
from headgate.errors import AwayError, ConfError
from headgate.report.screen import terminal_console
from headgate.tryout import folders
from headgate.tryout import session as module
from headgate.tryout.folders import loaded
from headgate.tryout.inputs import Source
from headgate.tryout.session import STOPPED, WRONG, Session, ended_by_signals
from unit.local_runs import SHARED, publishes, write_conf, write_trace

LIMIT = "maxPublishRatePerTopicInMessages"


@pytest.fixture
def trace(tmp_path):
    return Source(str(write_trace(tmp_path / "trace" / "part-0.json", publishes())), "json")


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def shown(trace, folders, act, stop=None, output=None, traffic="offered"):
    """The lines that a session prints, and what `act` returned."""
    console = io.StringIO()
    with Session(trace, [str(folder) for folder in folders], output, traffic, stop or threading.Event()) as session:
        session._screen._console = terminal_console(console)
        done = act(session)
    return [line.rstrip() for line in console.getvalue().splitlines()], done


def confs_of(*folders):
    return loaded([str(folder) for folder in folders])


def test_one_conf_has_the_closing_screen_of_the_job(trace, tmp_path):
    folder = write_conf(tmp_path / "conf")
    lines, status = shown(trace, [folder], lambda session: session.run(confs_of(folder)))
    assert status == 0
    assert "Throttled tenants" in lines
    (acme,) = (line for line in lines if line.startswith("acme "))
    assert acme.endswith("group gold (messages)")
    assert "Most throttled topics" in lines


def test_several_confs_stand_side_by_side_with_what_differs(trace, tmp_path):
    tight, loose = write_conf(tmp_path / "tight", **{LIMIT: 10}), write_conf(tmp_path / "loose", groups={})
    lines, status = shown(trace, [tight, loose], lambda session: session.run(confs_of(tight, loose)))
    assert status == 0
    start = lines.index("What differs between the conf files")
    assert [line.split() for line in lines[start + 1 : start + 5]] == [
        ["file", "key", "tight", "loose"],
        ["broker.conf", LIMIT, "10", "not", "set"],
        ["resource-groups.json", "resourcegroups.gold.publishRateInMsgs", "40", "not", "set"],
        ["resource-groups.json", "tenants.acme", "gold", "not", "set"],
    ]
    who = lines.index("Who was throttled under tight (2 of 2 tenants), when, by which limiter, and by whose fault")
    assert start < who < lines.index("Tenants")
    assert lines[who + 1].startswith("acme: from 09:00:0")
    assert "No publish is throttled under loose." in lines
    (acme,) = (line for line in lines if line.startswith("acme "))
    assert acme.split() == ["acme", "still", "waiting", "165", "(68.8%)", "0"]


def edits(*changes):
    """In the place of Watched: each look finds the next edit done; then comes Ctrl-C."""
    waiting = iter(changes)

    def saved(stop):
        change = next(waiting, None)
        if change is None:
            stop.set()
            return False
        change()
        return True

    return SimpleNamespace(saved=saved)


def test_a_saved_conf_is_tried_again_and_what_that_changed_is_told(trace, tmp_path):
    folder = write_conf(tmp_path / "conf")
    watched = edits(
        lambda: (folder / "broker.conf").write_text("# a comment\n"),
        lambda: (folder / "broker.conf").write_text(f"{LIMIT}=many\n"),
        lambda: (folder / "broker.conf").write_text(f"{LIMIT}=5\n"),
        (folder / "broker.conf").unlink,
    )
    lines, status = shown(trace, [folder], lambda session: session.watch(confs_of(folder), watched))
    assert status == 0
    told = [line for line in lines if line.startswith(("Saved", "1 mistake", "What that", "broker.conf", "globex "))]
    assert told[0] == "Saved; the conf files say the same as before."
    assert told[1] == "1 mistake in the configuration:"
    assert told[2].split() == ["broker.conf", LIMIT, "not", "set", "5"]
    assert told[3] == "What that changed for tenants"
    assert told[4].split()[:4] == ["globex", "still", "waiting", "0"]
    assert told[5].split() == ["broker.conf", LIMIT, "5", "not", "set"]
    assert sum(line.startswith("try: watching") for line in lines) == 5


def test_an_edit_that_changes_no_figure_says_so(trace, tmp_path):
    """Another group is to blame from then on."""
    folder = write_conf(tmp_path / "conf")
    groups = {"resourcegroups": {"silver": {"publishRateInMsgs": 40}}, "tenants": {"acme": "silver"}}
    watched = edits(lambda: write_conf(folder, groups=groups))
    lines, _ = shown(trace, [folder], lambda session: session.watch(confs_of(folder), watched))
    assert any("silver" in line for line in lines)
    assert "That changed nothing for any tenant." in lines
    assert "What that changed for tenants" not in lines


def test_watching_begins_with_mistakes_too_and_ends_without_a_run_as_stopped(trace, tmp_path):
    folder = write_conf(tmp_path / "conf", "[operator]\nslotz = 4\n")
    wrong = confs_of(folder)
    with pytest.raises(ConfError):
        shown(trace, [folder], lambda session: session.run(wrong))
    lines, status = shown(trace, [folder], lambda session: session.watch(wrong, edits()))
    assert status == STOPPED
    assert any("slotz" in line for line in lines)
    mend = edits(lambda: write_conf(folder))
    lines, status = shown(trace, [folder], lambda session: session.watch(wrong, mend))
    assert status == 0
    assert "Throttled tenants" in lines


def test_watching_ends_with_0_whatever_came_of_the_trace(tmp_path):
    folder, file = write_conf(tmp_path / "conf"), tmp_path / "empty.json"
    file.write_text("")
    empty = Source(str(file), "json")
    _, tried = shown(empty, [folder], lambda session: session.run(confs_of(folder)))
    _, watched = shown(empty, [folder], lambda session: session.watch(confs_of(folder), edits()))
    assert (WRONG, 0) == (tried, watched)


def test_watching_outlasts_a_store_that_is_away_for_a_moment(trace, tmp_path, monkeypatch):
    """The edit that could not be read is seen again."""
    folder, forgotten = write_conf(tmp_path / "conf"), []
    found, read = confs_of(folder), module.loaded

    def save():
        def away(_):
            monkeypatch.setattr(module, "loaded", read)
            raise AwayError("the store is away")

        (folder / "broker.conf").write_text(f"{LIMIT}=5\n")
        monkeypatch.setattr(module, "loaded", away)

    watched = edits(save, forgotten.pop)
    watched.forget = lambda: forgotten.append(1)
    lines, status = shown(trace, [folder], lambda session: session.watch(found, watched))
    assert status == 0
    assert "the store is away" in lines
    assert "What that changed for tenants" in lines


def test_a_stop_tells_of_what_was_done_until_then(tmp_path, monkeypatch):
    rows = publishes()
    for part in range(3):
        write_trace(tmp_path / "trace" / f"part-{part}.json", rows[part::3])
    source, stop = Source(str(tmp_path / "trace"), "json"), threading.Event()
    one, other = write_conf(tmp_path / "one", groups={}), write_conf(tmp_path / "other", groups={})
    ask = module.run_trial

    def stopped_after_a_batch(name, conf, batches, *more):
        def until_stop():
            for batch in batches:
                yield batch
                stop.set()

        return ask(name, conf, until_stop(), *more)

    monkeypatch.setattr(module, "run_trial", stopped_after_a_batch)
    lines, status = shown(source, [one, other], lambda session: session.run(confs_of(one, other)), stop)
    assert status == STOPPED
    (taken,) = (int(line.split()[1]) for line in lines if line.startswith("one: "))
    assert 0 < taken < len(rows)
    assert lines[-1] == "Not tried: other."


def test_the_first_signal_ends_a_run_after_its_batch_and_the_second_at_once(capsys, request):
    stop, before = Stop(), signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with ended_by_signals(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert "Ctrl-C again ends at once" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_a_terminal_that_closes_ends_a_run_after_its_batch_however_often_it_is_said(first, request, monkeypatch):
    stop, before = Stop(), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(signal.SIGHUP, before))
    monkeypatch.setattr("os.isatty", lambda _: False)  # else what tests print is dropped from here on
    monkeypatch.setattr("sys.stderr.write", lambda _: os.close(-1))  # an OSError, as of a pipe whose reader has ended
    with ended_by_signals(stop):
        signal.raise_signal(first)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
    assert stop.is_set()


def test_stdin_is_read_once_for_all_confs(trace, tmp_path, monkeypatch):
    plain, shared = write_conf(tmp_path / "plain", groups={}), write_conf(tmp_path / "shared")
    with Path(trace.path).open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        shown_lines, _ = shown(
            Source("-", "json"), [plain, shared], lambda session: session.run(confs_of(plain, shared))
        )
    rows = [line.split()[1] for line in shown_lines if line.startswith(("plain: ", "shared: "))]
    assert rows == [str(len(publishes()))] * 2


@pytest.mark.parametrize("groups", [{}, None])
def test_files_that_cannot_be_read_are_dead_letters_and_the_others_are_tried(tmp_path, groups):
    write_trace(tmp_path / "trace" / "a.json", publishes())
    (tmp_path / "trace" / "b.json.gz").write_bytes(b"no gzip")
    folder = write_conf(tmp_path / "conf", **({} if groups is None else {"groups": groups}))
    lines, _ = shown(Source(str(tmp_path / "trace"), "json"), [folder], lambda session: session.run(confs_of(folder)))
    (told,) = (line for line in lines if line.startswith("conf: "))
    assert told.startswith(f"conf: {len(publishes())} rows in ")
    assert ", 1 dead letters; publishes of 6 s, 2026-01-05T09:00:00Z to " in told


def test_rows_in_no_order_of_time_are_told_where_brokers_share_quotas(tmp_path):
    rows = publishes()
    for number, part in enumerate((rows[len(rows) // 2 :], rows[: len(rows) // 2])):
        write_trace(tmp_path / "trace" / f"{number}.json", part)
        os.utime(tmp_path / "trace" / f"{number}.json", (number, number))
    shared, alone = write_conf(tmp_path / "shared"), write_conf(tmp_path / "alone", groups={})
    lines, _ = shown(
        Source(str(tmp_path / "trace"), "json"), [shared, alone], lambda session: session.run(confs_of(shared, alone))
    )
    assert [line.split(":")[1] for line in lines if line.startswith("warning")] == [" shared"]


def test_publishes_that_wait_at_the_end_are_counted(trace, tmp_path):
    offered = '[operator]\ntraffic = "offered"\n'
    slow, free = (
        write_conf(tmp_path / name, offered, groups={}, **{LIMIT: limit}) for name, limit in (("slow", 1), ("free", 0))
    )
    lines, _ = shown(trace, [slow, free], lambda session: session.run(confs_of(slow, free)))
    waiting = [line.split()[-3:] for line in lines if "still waiting" in line]
    assert waiting
    assert all(int(of_slow) > 0 and of_free == "0" for of_slow, _, of_free in waiting)
    lines, _ = shown(trace, [slow], lambda session: session.run(confs_of(slow)))
    assert any("neither let in nor failed by the end, and still wait: " in line for line in lines)


def test_conf_files_that_are_saved_while_they_are_read_are_read_again(tmp_path, monkeypatch):
    folder = write_conf(tmp_path / "conf", **{LIMIT: 40})
    read = folders.load_folders

    def read_and_save(places, *, strict):
        confs = read(places, strict=strict)
        monkeypatch.setattr(folders, "load_folders", read)
        write_conf(folder, **{LIMIT: 4000})
        return confs

    monkeypatch.setattr(folders, "load_folders", read_and_save)
    found = confs_of(folder)
    assert found.confs["conf"].broker.topic_publish_rate_messages_per_s == 4000
    assert found.keys[0]["broker.conf", LIMIT] == "4000"


def test_tables_of_several_confs_are_kept_below_the_output(trace, tmp_path):
    one, other = write_conf(tmp_path / "one"), write_conf(tmp_path / "other", SHARED + "slots = 4\n")
    output = str(tmp_path / "out")
    lines, _ = shown(trace, [one, other], lambda session: session.run(confs_of(one, other)), output=output)
    assert [line for line in lines if line.startswith("Tables")] == [
        f"Tables (Delta) are under {output}/{name}: headgate tables {output}/{name}" for name in ("one", "other")
    ]
    for name in ("one", "other"):
        tables = {log.parent.name for log in (tmp_path / "out" / name).glob("*/_delta_log")}
        assert {"marks", "topic_usage", "batches", "control", "rg_usage", "rg_groups", "rg_limits"} <= tables


def test_a_trace_that_is_mostly_bad_is_no_answer(tmp_path):
    rows = publishes()[:20]
    path = write_trace(tmp_path / "trace.json", [*rows, *({"kind": "publish", "seq": n} for n in range(21))])
    folder = write_conf(tmp_path / "conf")
    lines, status = shown(Source(str(path), "json"), [folder], lambda session: session.run(confs_of(folder)))
    assert status == 2
    assert "NO ANSWER: 51.2% of the rows could not be used. What follows is of the others alone." in lines


@pytest.mark.parametrize(("late", "status"), [(13, 2), (2, 0)])
def test_a_trace_of_which_most_came_late_is_no_answer_where_quotas_are_shared(tmp_path, late, status):
    """As a file a broker does, one behind the other."""
    groups = {"resourcegroups": {"gold": {"publishRateInMsgs": 40}}, "tenants": {"acme": "gold"}}
    folder = write_conf(tmp_path / "conf", groups=groups)
    hour_later = [row | {"event_time": row["event_time"] + 3_600_000_000} for row in publishes()[: 25 - late]]
    path = write_trace(tmp_path / "trace.json", [*hour_later, *publishes()[:late]])
    lines, found = shown(Source(str(path), "json"), [folder], lambda session: session.run(confs_of(folder)))
    assert found == status
    assert any(line.startswith("NO ANSWER: 52.0% of the rows came more than") for line in lines) == (status == 2)


def test_limits_that_nothing_came_under_are_named_and_no_limit_is_called_so(trace, tmp_path):
    groups = {"resourcegroups": {"gold": {"publishRateInMsgs": 40}}, "tenants": {"amce": "gold"}}
    misspelt, empty = write_conf(tmp_path / "misspelt", groups=groups), write_conf(tmp_path / "empty", groups={})
    lines, _ = shown(trace, [misspelt, empty], lambda session: session.run(confs_of(misspelt, empty)))
    came_under = "no publish or dispatch of this trace came under"
    assert [f"misspelt: {came_under} tenant amce (resource-groups.json)"] == [
        line for line in lines if came_under in line
    ]
    lines, _ = shown(trace, [empty], lambda session: session.run(confs_of(empty)))
    assert "No publish was throttled: the conf files set no limit of publishes." in lines


@pytest.mark.usefixtures("no_store")
def test_a_store_that_is_away_is_asked_for_conf_once():
    """Not for each file of each folder, which takes minutes."""
    with pytest.raises(AwayError, match=r"^--conf-dir: s3a://b/conf cannot be reached"):
        loaded(["s3a://b/conf"])
