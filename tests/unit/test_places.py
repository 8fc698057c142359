"""Places that cannot be meant, and the lock of a checkpoint."""

import os
import re

import pytest

from headgate.errors import InputError, StateError
from headgate.places import (
    RUNNING,
    check_checkpoint,
    check_new,
    check_places,
    check_there,
    check_writable,
    claimed,
    sole_use,
    tried,
)
from soak import Disk


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (("", "out", "out/checkpoint"), "--input: got an empty name; give a folder or topic"),
        (("in", " ", "c"), "--output: got an empty name; give a folder"),
        (("in", "out", ""), "--checkpoint: got an empty name; give a folder"),
        (("in", "a%3ab/out", "c"), "--output: got a%3ab/out, where %3a in the path"),
        (("in", "in", "c"), "--output: got in, which is in the --input in"),
        (("in", "in/../in/tables", "c"), "--output: got in/../in/tables, which is in the --input in"),
        (("in", "out", "in/c"), "--checkpoint: got in/c, which is in the --input in"),
        (("data/*", "data/out", "c"), "--output: got data/out, which is in the --input data/*"),
        (("s3a://b/in", "s3a://b/in/out", "c"), "--output: got s3a://b/in/out, which is in the --input s3a://b/in"),
        (("s3://b/in", "out", "c"), "--input: got s3://b/in; allowed are s3a://, abfss://, gs://; give s3a://b/in"),
        (("in", "s3a://", "c"), "--output: got s3a://; allowed is s3a://BUCKET/FOLDER"),
        (("in", "hdfs://b/o", "c"), "--output: got hdfs://b/o; allowed are a path and an address with s3a://"),
        (("in", "out", "c/file"), "--checkpoint: c/file is a file; give a folder"),
        (("in", "~/out", "c"), "--output: got '~/out', where ~ or a space at an end is read differently"),
        (
            ("file:///data/in", "/data/in/out", "c"),
            "--output: got /data/in/out, which is in the --input file:///data/in",
        ),
    ],
)
def test_places_that_cannot_be_meant_are_refused(places, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "file").touch()
    with pytest.raises(InputError, match="^" + re.escape(said)):
        check_places(*places, files=True)


@pytest.mark.parametrize("content", ["", '{"id', "7", "{}"])
def test_a_damaged_file_metadata_of_a_checkpoint_is_named(content, tmp_path):
    (tmp_path / "metadata").write_text(content)
    with pytest.raises(StateError, match=r"cannot be read: its file metadata is damaged; put it back"):
        check_places("in", "out", str(tmp_path), files=True)
    (tmp_path / "metadata").write_text('{"id":"x"}')
    check_places("in", "out", str(tmp_path), files=True)


@pytest.mark.parametrize("scheme", ["FILE://", "file://localhost"])
def test_an_input_has_no_other_address_of_this_machine_than_a_path(scheme):
    with pytest.raises(InputError, match=f"^--input: got {scheme}/tmp; allowed are a path, file:///PATH and an"):
        check_there(f"{scheme}/tmp", "--input")


@pytest.mark.parametrize(
    "places",
    [
        ("demo/trace", "demo", "demo/checkpoint"),
        ("in", "in-2", "c"),
        ("hdfs://b/in", "out", "c"),
        ("data/*.json", "data/out", "data/c"),
        ("in%20", "100%", "c%20"),
    ],
)
def test_other_places_are_taken(places):
    check_places(*places, files=True)


@pytest.mark.parametrize(
    ("output", "found"), [("a%20b", "%20"), ("s3a://b/a%20b", "%20"), ("~/o", "~"), ("./o ", "~ or a space")]
)
def test_a_new_output_that_delta_rs_would_make_elsewhere_is_refused(output, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^--output: got '?{output}'?, where {found} "):
        check_new(output)


def test_the_mark_of_a_run_is_in_its_output_however_that_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with claimed(f"file://{tmp_path}/out"):
        assert [RUNNING] == [file.name for file in (tmp_path / "out").iterdir()]
    assert [] == list(tmp_path.iterdir())


def test_a_run_that_fails_leaves_the_mark_of_one_that_is_not_through(tmp_path):
    output = tmp_path / "out"

    def fail():
        with claimed(str(output)):
            (output / "marks" / "_delta_log").mkdir(parents=True)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert tried(str(output)) == RUNNING


def test_the_name_of_a_topic_is_no_folder():
    check_places("publishes", "publishes", "publishes/checkpoint", files=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small disk")
def test_a_disk_that_is_read_only_is_said_to_be(tmp_path):
    with (
        Disk(tmp_path / "disk") as disk,
        disk.read_only(),
        pytest.raises(InputError, match=r"--output: .*disk/out cannot be written: .*disk is on a disk that is read-"),
    ):
        check_writable(f"{disk.folder}/out")


def test_a_checkpoint_has_one_job_at_a_time(tmp_path):
    checkpoint = str(tmp_path / "out" / "checkpoint")
    running = pytest.raises(StateError, match="another job is running on ")
    with sole_use(checkpoint), running, sole_use(checkpoint):
        pass
    with sole_use(checkpoint), running, sole_use(f"file://{checkpoint}"):
        pass
    with sole_use(checkpoint), sole_use(str(tmp_path / "out" / "another")):
        pass


@pytest.mark.parametrize(
    ("broker", "remedy"),
    [
        (None, "or give another --output (jobs/throttle.py: or --broker where each broker has a job)"),
        ("b1", "since a broker has one job, or give the --broker that is meant, if that is not b1"),
    ],
)
def test_what_to_do_goes_by_whether_a_broker_was_given(tmp_path, broker, remedy):
    folder = str(tmp_path / "out")
    said = f"^{re.escape(f'another job is running on {folder}: stop it first, {remedy}')}$"
    with sole_use(folder), pytest.raises(StateError, match=said), sole_use(folder, broker):
        pass


def test_a_place_without_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "metadata").touch()
    check_checkpoint(str(tmp_path))
    with pytest.raises(InputError, match=f"^--checkpoint: {tmp_path}/c is no checkpoint; give that of a job"):
        check_checkpoint(f"{tmp_path}/c")
    assert not (tmp_path / "c").exists()
