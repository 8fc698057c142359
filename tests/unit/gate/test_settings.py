"""Where a gate listens and whom it lets in: what is refused before it starts."""

from pathlib import Path

import pytest

from headgate.errors import ConfError, EndpointError
from headgate.gate.settings import GateSettings
from headgate.hosts import is_loopback


def test_the_defaults_are_on_loopback_without_tls_and_token() -> None:
    settings = GateSettings.of({})

    assert (settings.host, settings.port, settings.tls(), settings.token()) == ("127.0.0.1", 6653, None, None)
    assert GateSettings.of({"--port": None}) == settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_neither(host: str) -> None:
    assert is_loopback(host)
    GateSettings.of({"--host": host})


@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        ({}, ["--tls-cert and --tls-key", "--token-file"]),
        ({"--token-file": "t"}, ["--tls-cert and --tls-key"]),
        ({"--tls-cert": "c", "--tls-key": "k"}, ["--token-file"]),
    ],
)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1"])
def test_any_other_address_needs_both(given: dict[str, object], lacking: list[str], host: str) -> None:
    with pytest.raises(ConfError) as refused:
        GateSettings.of({"--host": host} | given)

    assert [mistake.partition(":")[0] for mistake in refused.value.mistakes] == lacking
    assert all(host in mistake for mistake in refused.value.mistakes)


def test_any_other_address_with_both_is_taken() -> None:
    GateSettings.of({"--host": "0.0.0.0", "--tls-cert": "c", "--tls-key": "k", "--token-file": "t"})


def test_half_of_tls_is_refused() -> None:
    with pytest.raises(ConfError, match="got one of them"):
        GateSettings.of({"--tls-cert": "c"})


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfError) as refused:
        GateSettings.of({"--port": 70_000, "--max-frame-bytes": 1, "--idle-timeout-ms": "x", "--max-connections": 0})
    assert len(refused.value.mistakes) == 4


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(EndpointError, match="no address"):
        GateSettings.of({"--host": "no such name"})


@pytest.mark.parametrize(("content", "token"), [(b"s3cret\n", b"s3cret"), (b" a b ", b"a b")])
def test_a_token_is_what_stands_in_its_file(content: bytes, token: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    settings = GateSettings.of({"--token-file": tmp_path / "t"})

    assert settings.token() == token
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("content", "words"), [(b" \n", "0 bytes"), (b"x" * 4097, "4097 bytes"), (None, "cannot be read")]
)
def test_a_file_without_a_token_is_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    with pytest.raises(ConfError, match=words):
        GateSettings.of({"--token-file": str(tmp_path / "t")}).token()


def test_files_that_are_no_certificate_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("no certificate")
    for key in ("c", "absent"):
        with pytest.raises(ConfError, match="cannot be used"):
            GateSettings.of({"--tls-cert": tmp_path / "c", "--tls-key": tmp_path / key}).tls()
