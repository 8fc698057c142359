"""Conf files are saved in place, by rename, several at once, or go and come back."""

import os

import pytest

from headgate.tryout import watch
from headgate.tryout.watch import Watched


class Looks:
    """A stop that is never set by itself: before each look, the next step is done; after the last one it is set."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.looks = 0

    def wait(self, _seconds):
        self.looks += 1
        if not self.steps:
            return True
        step = self.steps.pop(0)
        if step is not None:
            step()
        return False

    def is_set(self):
        return not self.steps


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "broker.conf").write_text("a=1\n")
    return tmp_path


def renamed(folder, text):
    def save():
        (folder / "new").write_text(text)
        os.rename(folder / "new", folder / "broker.conf")  # noqa: PTH104  as editors do

    return save


def test_nothing_saved_is_no_change(folder):
    assert not Watched([str(folder)]).saved(Looks(None, None, None))


def test_a_file_replaced_by_another_of_the_same_size_and_time_is_a_change(folder):
    watched, file = Watched([str(folder)]), folder / "broker.conf"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    save = renamed(folder, "a=2\n")
    assert watched.saved(Looks(lambda: (save(), os.utime(file, ns=times)), None, None))


def test_what_was_saved_while_nobody_can_look_is_seen_later_and_what_could_not_be_read_again(folder, monkeypatch):
    def away(_):
        raise OSError("the store is away")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(watch, "stamp_of", away)
        watched = Watched([str(folder)])
        assert not watched.saved(Looks(None, None))
    assert watched.saved(Looks(None, None))
    looks = Looks(lambda: monkeypatch.setattr(watch, "stamp_of", away), None, monkeypatch.undo, None, None)
    assert not watched.saved(looks)
    watched.forget()
    assert watched.saved(Looks(None, None))


def test_files_that_are_saved_together_are_one_change(folder):
    watched = Watched([str(folder)])
    looks = Looks(renamed(folder, "a=22\n"), lambda: (folder / "headgate.toml").write_text(""), None, None)
    assert watched.saved(looks)
    assert looks.looks == 3
    assert not watched.saved(looks)


def test_a_file_that_is_away_for_a_look_is_no_change_and_one_that_stays_away_is(folder):
    watched, file = Watched([str(folder)]), folder / "broker.conf"
    away = folder / "away"
    assert not watched.saved(Looks(lambda: file.rename(away), lambda: away.rename(file), None, None))
    assert watched.saved(Looks(lambda: file.rename(away), None, None))
    assert watched.saved(Looks(lambda: away.rename(file), None, None))
