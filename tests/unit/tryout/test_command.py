"""What `headgate try` refuses, all of it at once, and what it loads before it has something to run."""

import argparse
import subprocess
import sys

import pytest

from headgate.cli import main
from headgate.errors import HeadgateError, InputError
from headgate.tryout import inputs
from headgate.tryout.command import run
from headgate.tryout.inputs import check_new, check_patience, claimed, format_of
from unit.local_runs import write_conf

HEAVY = {"numba", "numpy", "pandas", "pyarrow", "deltalake", "matplotlib", "rich", "pyspark"}


def options(**given):
    defaults = {"path": None, "conf_dir": None, "format": None, "traffic": None, "output": None, "watch": False}
    return argparse.Namespace(**(defaults | given))


def test_all_mistakes_of_a_call_are_told_at_once(tmp_path):
    write_conf(tmp_path / "a", broker_=1, maxPublishRatePerTopicInMessages="many")
    write_conf(tmp_path / "b", "[operator]\nslotz = 1\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    folders = [str(tmp_path / name) for name in ("a", "b", "b/../a", "none")]
    with pytest.raises(HeadgateError) as refused:
        run(options(path=str(tmp_path / "gone"), conf_dir=folders, output=str(tmp_path / "full")))
    for part in (
        "'many'",
        "slotz",
        "the name a a second time",
        "none: got no directory",
        "gone",
        "full, which is there",
    ):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("files", "given", "part"),
    [
        ([], {}, "got a folder without files"),
        ([".hidden/part.json", "_delta.json"], {}, "got a folder without files"),
        (["a.json", "b.csv"], {}, "got .csv, .json"),
        (["a.txt"], {}, "got .txt"),
        (["a.json"], {"watch": True, "output": "new"}, "give one of them"),
    ],
)
def test_input_that_cannot_be_taken_is_refused_in_words(tmp_path, files, given, part):
    trace = tmp_path / "trace"
    trace.mkdir()
    for name in files:
        (trace / name).parent.mkdir(exist_ok=True)
        (trace / name).touch()
    with pytest.raises(HeadgateError, match=part):
        run(options(path=str(trace), conf_dir=[str(write_conf(tmp_path / "conf"))], **given))


def test_the_format_is_that_of_the_names(tmp_path):
    for names, expected in ((["a.jsonl", "b.ndjson.gz"], "json"), (["a.parquet"], "parquet"), (["x.CSV"], "csv")):
        folder = tmp_path / expected
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        assert format_of(str(folder)) == expected
    assert format_of("-") == "json"
    assert format_of(str(tmp_path / "parquet" / "*.parquet")) == "parquet"


def test_a_trace_too_large_for_one_process_is_told_with_the_command_to_use(tmp_path, monkeypatch):
    trace = tmp_path / "t.json"
    monkeypatch.setitem(inputs.MOST_MIB, "json", 1)
    trace.write_bytes(bytes(2**20))
    check_patience(str(trace), "json")
    trace.write_bytes(bytes(2**20 + 1))
    with pytest.raises(InputError, match=rf"spark-submit.sh jobs/throttle.py --input {trace} --format json"):
        check_patience(str(trace), "json")


def test_a_stop_before_anything_is_there_is_no_traceback(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.tryout.command.run", interrupted)
    assert main(["try"]) == 130
    assert capsys.readouterr().err == "headgate: stopped\n"


def test_an_output_belongs_to_one_run(tmp_path):
    output = tmp_path / "new" / "deep"
    with claimed(str(output)):
        for taken in (output, output / ".running"):
            with pytest.raises(InputError, match="another run writes there"), claimed(str(taken)):
                pass
    assert list(output.iterdir()) == []
    with pytest.raises(InputError, match=r"--output: /proc/x cannot be written"), claimed("/proc/x"):
        pass


def test_what_stdin_cannot_be_and_an_output_without_a_name_are_refused():
    with pytest.raises(HeadgateError, match=r"--format: got parquet with PATH -") as refused:
        run(options(path="-", format="parquet", output="", conf_dir=["conf"]))
    assert "--output: got ''" in str(refused.value)


def test_a_refused_output_is_not_made(tmp_path):
    check_new(str(tmp_path / "new" / "deep"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["try", "--help"], ["try", "--conf-dir", "WRONG", "nothing-there"]])
def test_neither_help_nor_a_mistake_loads_what_runs_the_rules(tmp_path, arguments):
    folder = write_conf(tmp_path / "conf", maxPublishRatePerTopicInMessages="many")
    arguments = [str(folder) if argument == "WRONG" else argument for argument in arguments]
    program = (
        "import sys\nfrom headgate.cli import main\n"
        f"try:\n    status = main({arguments!r})\nexcept SystemExit as error:\n    status = error.code\n"
        f"print(status, sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    status = 2 if "try" in arguments and "--help" not in arguments else 0
    assert done.stderr.splitlines()[-1] == f"{status} []"


def test_a_reader_who_has_enough_ends_it_without_a_word(tmp_path):
    folder = write_conf(tmp_path / "conf")
    command = f"{sys.executable} -m headgate try {tmp_path}/t.json --conf-dir {folder} | head -0"
    (tmp_path / "t.json").write_text("")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_an_empty_trace_is_no_mistake(tmp_path, capsys):
    (tmp_path / "t.json").write_text("")
    assert main(["try", str(tmp_path / "t.json"), "--conf-dir", str(write_conf(tmp_path / "conf"))]) == 0
    assert "0 rows in" in capsys.readouterr().out


def test_the_command_does_not_load_pandas_which_pyarrow_would(tmp_path):
    (tmp_path / "t.json").write_text("")
    arguments = ["headgate", "try", str(tmp_path / "t.json"), "--conf-dir", str(write_conf(tmp_path / "conf"))]
    program = f"import sys\nsys.argv = {arguments!r}\nfrom headgate.cli import main\nmain()\n"
    program += "print([name for name in sys.modules if name.startswith('pandas.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
