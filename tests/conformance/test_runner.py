"""The runner reports what does not hold, and refuses what it cannot replay."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

import headgate
from headgate.cli import main
from headgate.conformance import kernel_adapters, replay, report_lines
from headgate.conformance.equality import json_equal
from headgate.conformance.report import Mismatch
from headgate.conformance.timed import UnsupportedVectorError
from headgate.errors import ConformanceError

BUCKET = {
    "id": "A-1",
    "kind": "token_bucket",
    "about": "ten a second",
    "config": {"rate": 10, "initial": 0, "created_ns": 0},
    "ops": [
        {"at_ns": 1_000_000_000, "op": "balance", "expect": 10},
        {"at_ns": 1_000_000_000, "op": "consume", "n": -1, "expect": {"error": "invalid_argument"}},
        {"at_ns": 1_000_000_000, "op": "consume_check", "n": 4, "expect": True},
    ],
}
REPEATS = {
    "id": "A-2",
    "kind": "token_bucket",
    "config": {"rate": 10, "capacity": 1000, "initial": 1000, "resolution_ns": 0, "created_ns": 0},
    "ops": [
        {"at_ns": 0, "op": "balance", "expect": 1000},
        {
            "at_ns": 1_000,
            "op": "repeat",
            "every_ns": 1_000,
            "times": 3,
            "ops": [
                {
                    "at_ns": 500,
                    "op": "repeat",
                    "every_ns": 10,
                    "times": 2,
                    "ops": [{"at_ns": 1, "op": "consume_check", "n": 150, "expect": True}],
                }
            ],
        },
    ],
}
REFUSED = {
    "id": "A-3",
    "kind": "token_bucket",
    "config": {"rate": 0, "created_ns": 0},
    "ops": [{"at_ns": 0, "op": "construct", "expect": {"error": "invalid_argument"}}],
}


def changed(vector, **changes):
    return {**copy.deepcopy(vector), **changes}


def expecting(vector, position, value):
    other = copy.deepcopy(vector)
    other["ops"][position]["expect"] = value
    return other


@pytest.fixture
def vector_file(tmp_path):
    def write(*vectors, **content):
        path = tmp_path / "vectors.json"
        path.write_text(json.dumps({"format": 1, "vectors": list(vectors), **content}))
        return path

    return write


def mismatches(path):
    return [mismatch for result in replay([path]).results for mismatch in result.mismatches]


def test_vectors_that_hold_pass(vector_file):
    report = replay([vector_file(BUCKET, REPEATS, REFUSED)])

    assert [result.outcome for result in report.results] == ["passed", "passed", "passed"]
    assert report.exit_status == 0


def test_a_changed_expectation_fails_with_what_came_instead(vector_file):
    report = replay([vector_file(expecting(BUCKET, 0, 11))])

    assert (Mismatch("ops[0]", "balance", 11, 10),) == report.results[0].mismatches
    assert report.exit_status == 1


@pytest.mark.parametrize(
    ("position", "expect"),
    [(0, 10.0), (0, "10"), (0, None), (2, 1), (1, None), (1, {"error": "closed"}), (1, {})],
)
def test_equality_is_strict(vector_file, position, expect):
    assert [f"ops[{position}]"] == [
        found.path for found in mismatches(vector_file(expecting(BUCKET, position, expect)))
    ]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1, True),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        (1, 1.0, False),
        ([1, 2], [2, 1], False),
        ([1, 2], (1, 2), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ([[True]], [[1]], False),
        ("1", 1, False),
    ],
)
def test_json_equality_keeps_integers_booleans_and_null_apart(left, right, equal):
    assert equal is json_equal(left, right)
    assert equal is json_equal(right, left)


def test_a_mismatch_inside_repeats_names_the_path_to_it(vector_file):
    starved = changed(REPEATS, config={**REPEATS["config"], "initial": 700})

    assert [
        Mismatch("ops[0]", "balance", 1000, 700),
        Mismatch("ops[1] iteration 2 > ops[0] iteration 0 > ops[0]", "consume_check", True, False),
        Mismatch("ops[1] iteration 2 > ops[0] iteration 1 > ops[0]", "consume_check", True, False),
    ] == mismatches(vector_file(starved))


def test_times_inside_repeats_are_relative_to_all_repeats_around(vector_file):
    inner = {"at_ns": 3, "op": "update", "waited": False, "expect": 123}
    middle = {"at_ns": 20, "op": "repeat", "every_ns": 0, "times": 1, "ops": [inner]}
    outer = {"at_ns": 100, "op": "repeat", "every_ns": 0, "times": 1, "ops": [middle]}
    clock = {
        "id": "C",
        "kind": "clock",
        "config": {"policy": "leap_tolerant", "interval_ns": 1_000_000},
        "ops": [outer],
    }

    assert mismatches(vector_file(clock)) == []


def test_building_against_expectation_fails(vector_file):
    built = changed(REFUSED, config={"rate": 1, "created_ns": 0})
    without_construct = changed(BUCKET, config={"rate": 0, "created_ns": 0})

    assert [Mismatch("construct", "construct", {"error": "invalid_argument"}, None)] == mismatches(vector_file(built))
    assert (
        Mismatch("construct", "construct", None, {"error": "invalid_argument"})
        == (mismatches(vector_file(without_construct))[0])
    )


def test_no_operation_holds_after_an_error_of_building(vector_file):
    after = changed(REFUSED, ops=[*REFUSED["ops"], {"at_ns": 0, "op": "balance", "expect": 0}])

    assert [Mismatch("ops[1]", "balance", 0, {"error": "invalid_argument"})] == mismatches(vector_file(after))


def test_a_broken_operation_fails_its_vector_and_leaves_the_others(vector_file):
    broken = changed(BUCKET, id="B", ops=[{"at_ns": 0, "op": "consume", "expect": None}])
    report = replay([vector_file(broken, BUCKET)])

    assert report.results[0].mismatches[0].got == {"crash": "KeyError: 'n'"}
    assert [result.outcome for result in report.results] == ["failed", "passed"]


def test_an_unknown_operation_is_an_invalid_argument(vector_file):
    unknown = changed(BUCKET, ops=[{"at_ns": 0, "op": "fill", "expect": {"error": "invalid_argument"}}])

    assert mismatches(vector_file(unknown)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"vectors": [changed(BUCKET, kind="bucket")]}, "unknown kind 'bucket'"),
        ({"format": 2}, "format 2, known is 1"),
        ({"format": None}, "format None"),
        ({"format": True}, "format True"),
        ({"vectors": {}}, "'vectors' is missing or no list"),
        ({"vectors": [[]]}, "vector 0 is no object"),
        ({"vectors": [{"kind": "token_bucket"}]}, "'id' is missing"),
        ({"vectors": [changed(BUCKET, ops=[{"op": "balance", "at_ns": 0}])]}, "'expect' is missing"),
        ({"vectors": [changed(BUCKET, ops=[{"op": "balance", "expect": 0}])]}, "'at_ns' is missing"),
        ({"vectors": [changed(BUCKET, ops=[{"op": "balance", "at_ns": True, "expect": 0}])]}, "'at_ns' is no int"),
        ({"vectors": [{"id": "A", "kind": "token_bucket", "ops": []}]}, "'config' is missing"),
    ],
)
def test_what_cannot_be_replayed_is_an_error_not_a_skip(vector_file, content, message):
    path = vector_file(**content)

    with pytest.raises(ConformanceError, match=message):
        replay([path])


def test_unreadable_files_are_errors(tmp_path):
    (tmp_path / "no.json").write_text("{")

    for path in (tmp_path / "no.json", tmp_path / "missing.json"):
        with pytest.raises(ConformanceError, match="cannot be read"):
            replay([path])


def test_a_folder_stands_for_its_json_files(tmp_path, vector_file):
    vector_file(BUCKET)
    empty = tmp_path / "empty"
    empty.mkdir()

    assert [result.vector_id for result in replay([tmp_path]).results] == ["A-1"]
    with pytest.raises(ConformanceError, match=r"has no \*\.json"):
        replay([empty])


def test_the_command_of_the_readme_replays_all_vectors(capsys):
    assert main(["conformance", str(Path(__file__).parent / "vectors")]) == 0
    assert " passed, 0 failed, 0 skipped" in capsys.readouterr().out.splitlines()[-1]


def test_kinds_without_an_array_form_are_skipped_with_the_reason(vector_file, monkeypatch):
    monkeypatch.setattr(kernel_adapters, "KERNEL_ADAPTERS", {})
    report = replay([vector_file(BUCKET)], kernel=True)

    assert [result.skip_reason for result in report.results] == ["no array form"]
    assert report.exit_status == 0
    assert "skipped 1 of token_bucket: no array form" in list(report_lines(report))


def test_array_forms_replay_in_place_of_the_core(vector_file, monkeypatch):
    class AlwaysSeven:
        def perform(self, *_):
            return 7

    def factory(config):
        if config["rate"] == 0:
            raise UnsupportedVectorError("no rate of 0")
        return AlwaysSeven()

    monkeypatch.setattr(kernel_adapters, "KERNEL_ADAPTERS", {"token_bucket": factory})
    report = replay([vector_file(expecting(BUCKET, 0, 7), REFUSED)], kernel=True)

    assert [(found.path, found.got) for found in report.results[0].mismatches] == [("ops[1]", 7), ("ops[2]", 7)]
    assert report.results[1].skip_reason == "no rate of 0"


def test_cache_traces_whose_settings_have_no_array_form_are_skipped_with_the_reason(vector_file):
    trace = {"id": "T", "kind": "cache_trace", "config": {"headgate.cache.policy": "s3fifo"}, "ops": []}
    report = replay([vector_file(trace)], kernel=True)

    assert [result.skip_reason for result in report.results] == ["no array form: policy s3fifo"]


def test_the_report_counts_per_file_and_kind_and_ends_with_the_totals(vector_file):
    path = vector_file(BUCKET, expecting(BUCKET, 0, 11), {"id": "C", "kind": "clock", "config": {}, "ops": []})

    assert [
        str(path),
        "  token_bucket                1 passed,     1 failed,     0 skipped",
        "  clock                       1 passed,     0 failed,     0 skipped",
        "FAILED A-1 (token_bucket) at ops[0], balance",
        "  expected 11",
        "  got      10",
        "2 passed, 1 failed, 0 skipped",
    ] == list(report_lines(replay([path])))


def test_the_report_shows_the_first_failures_alone(vector_file):
    lines = list(report_lines(replay([vector_file(*[expecting(BUCKET, 0, 11)] * 12)])))

    assert sum(line.startswith("FAILED") for line in lines) == 10
    assert lines[-2:] == ["... and 2 failed vectors more", "0 passed, 12 failed, 0 skipped"]


def test_the_command_exits_with_0_1_or_2(vector_file, capsys):
    assert main(["conformance", str(vector_file(BUCKET))]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"

    assert main(["conformance", str(vector_file(expecting(BUCKET, 0, 11)))]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"

    assert main(["conformance", str(vector_file(BUCKET, format=3))]) == 2
    printed = capsys.readouterr()
    assert printed.err.endswith("vectors.json: format 3, known is 1\n")
    assert printed.out == ""


def test_the_module_runs_the_command(vector_file):
    command = [sys.executable, "-m", "headgate", "conformance", str(vector_file(BUCKET))]
    lib = Path(headgate.__file__).parent.parent
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(lib)})

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_the_version_is_the_package_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"headgate {headgate.__version__}\n"
