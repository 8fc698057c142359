"""Arguments that are places on stores, as all commands and jobs read them."""

import argparse

import pytest

from headgate.cli import main
from headgate.options import Parser

CLUSTER = ("--cluster", "cluster.toml")


@pytest.mark.parametrize("place", ["s3://b/x", "S3A://b/x", "s3a:///x", "s3a://b/x#y", "s3a://b//x"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("try", "PLACE"), "PATH"),
        (("try", "--output", "PLACE"), "--output"),
        (("try", "--conf-dir", "conf", "--conf-dir", "PLACE"), "--conf-dir"),
        (("try", "--recommend", "PLACE"), "--recommend"),
        (("replay", "--input", "PLACE"), "--input"),
        (("sweep", "--output", "PLACE"), "--output"),
        (("sql", "PLACE", "SHOW TABLES"), "OUTPUT"),
        (("tables", "PLACE"), "OUTPUT"),
        (("usage", "PLACE"), "OUTPUT"),
        (("why", "persistent://a/b/c", "PLACE"), "OUTPUT"),
        (("usage", "out", "--limit-table", "PLACE"), "--limit-table"),
        (("groups", "list", "out", "--group-table", "PLACE"), "--group-table"),
        (("collect", *CLUSTER, "--output", "PLACE"), "--output"),
        (("enforce", *CLUSTER, "--release", "--output", "PLACE"), "--output"),
        (("cluster", "check", *CLUSTER, "--output", "PLACE"), "--output"),
        (("serve", "PLACE"), "OUTPUT"),
        (("gate", "table", "PLACE"), "OUTPUT"),
        (("gate", "table", "out", "--receipts", "PLACE"), "--receipts"),
    ],
)
def test_every_command_refuses_an_address_that_cannot_be_meant_in_one_line(command, option, place, capsys):
    with pytest.raises(SystemExit) as ended:
        main([place if part == "PLACE" else part for part in command])
    told = capsys.readouterr()
    assert (2, "", 1) == (ended.value.code, told.out, told.err.count("\n"))
    assert told.err.startswith(f"headgate: {option}: got {place}"), told.err
    assert "; allowed " in told.err


@pytest.mark.parametrize("given", ["", " "])
@pytest.mark.parametrize(
    ("command", "place"), [(("try",), "PATH"), (("tables",), "OUTPUT"), (("why", "persistent://a/b/c"), "OUTPUT")]
)
def test_a_place_without_a_name_is_refused(command, place, given, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, given])
    said = f"headgate: {place}: got {given!r}; allowed is a path or an address; correct it\n"
    assert (2, ("", said)) == (ended.value.code, capsys.readouterr())


def test_arguments_lose_the_slash_at_the_end_of_an_address_and_nothing_else(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    parser = Parser(prog="throttle")
    for name in ("output", "input", "checkpoint"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--conf-dir", action="append")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--grid", metavar="FILE")
    parser.add_argument("others", nargs=argparse.REMAINDER)
    given = parser.parse_args(
        [
            *("--output=s3a://b/live/", "--input=data/", "--conf-dir=s3a://b/", "--conf-dir=conf/"),
            *("--seeds", "1", "2", "--grid=s3a://b/x/#y", "job", "s3a://b/x/#y"),
        ]
    )
    assert vars(given) == {
        "output": "s3a://b/live",
        "input": "data/",
        "checkpoint": None,
        "conf_dir": ["s3a://b", "conf/"],
        "seeds": [1, 2],
        "grid": "s3a://b/x/#y",
        "others": ["job", "s3a://b/x/#y"],
    }


@pytest.mark.parametrize("place", ["file:///a b/%20", "file:/a b/%20"])
def test_an_address_of_this_machine_is_its_path(place, monkeypatch):
    taken = []
    monkeypatch.setattr("headgate.tryout.command.run", lambda options: taken.append(options) or 0)
    assert main(["try", place, "--conf-dir", place, "--output", place]) == 0
    ((path, folders, output),) = [(one.path, one.conf_dir, one.output) for one in taken]
    assert ("/a b/%20", ["/a b/%20"], "/a b/%20") == (path, folders, output)


@pytest.mark.parametrize("place", ["file:a", "file://a/b", "file:////a", "FILE:///a", "a/file:/b"])
def test_what_is_no_address_of_this_machine_is_left_as_it_is(place):
    parser = Parser()
    parser.add_argument("--input")
    assert parser.parse_args(["--input", place]).input == place
