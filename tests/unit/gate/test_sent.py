"""How far commands were sent, over restarts."""

from pathlib import Path

import pytest

from headgate.errors import StateError
from headgate.gate.sent import Sent


def saved(sent: Sent) -> None:
    written = sent.written()
    assert written is not None
    sent.save(written)
    sent.saved()


def test_what_was_saved_is_known_after_a_restart(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "s", "t")
    sent.note("a", 5, 100)
    sent.note("a", 6, 90)
    sent.note("b", 1, 10)
    saved(sent)
    again = Sent(tmp_path / "s", "t")

    assert [again.last_seq(name) for name in "abc"] == [6, 1, 0]
    again.forget(99, set())
    assert [again.last_seq(name) for name in "ab"] == [6, 0]


def test_numbers_never_go_back(tmp_path: Path) -> None:
    sent = Sent(None, "t")
    sent.note("a", 5, 100)
    sent.note("a", 4, 50)

    assert sent.last_seq("a") == 5
    sent.forget(99, set())
    assert sent.last_seq("a") == 5


def test_those_of_clients_that_are_there_are_not_forgotten() -> None:
    sent = Sent(None, "t")
    sent.note("a", 5, 100)
    sent.forget(200, {"a"})
    assert sent.last_seq("a") == 5


def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "s", "t")
    assert sent.written() is None
    sent.note("a", 1, 1)
    saved(sent)

    assert sent.written() is None
    sent.forget(100, set())
    assert sent.written() is not None


def test_a_crash_while_it_is_written_leaves_the_former_file(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "s", "t")
    sent.note("a", 1, 1)
    saved(sent)
    (tmp_path / "s.unfinished").write_text('{"version": 1, "ta')

    assert Sent(tmp_path / "s", "t").last_seq("a") == 1


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "table": "t", "sent": {"a": [1]}}', "\x00"])
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(content)
    with pytest.raises(StateError, match="no file of a gate"):
        Sent(tmp_path / "s", "t")


@pytest.mark.parametrize(("version", "table"), [(2, "t"), (1, "u")])
def test_a_file_of_another_version_or_table_is_refused(version: int, table: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(f'{{"version": {version}, "table": "{table}", "sent": {{}}}}')
    with pytest.raises(StateError, match="another table"):
        Sent(tmp_path / "s", "t")


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "absent" / "s", "t")
    sent.note("a", 1, 1)
    with pytest.raises(StateError, match="cannot be written"):
        saved(sent)
