"""The fixture `store`: a real S3-compatible server with one bucket, and a way to it that fails at times."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from real_broker import free_ports, started

START_TIMEOUT_S = 300  # the first start fetches the jars
BUCKET, IDENTITY, SECRET = "bucket", "AKIDTESTTESTTEST", "only-the-tests-know-this-secret"
VARIABLES = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION")


@dataclass(frozen=True)
class Store:
    """endpoint: of the server. files: pyarrow's own way to it, past headgate."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """As an operator gives them."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": IDENTITY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    @property
    def files(self) -> pafs.S3FileSystem:
        keys = {"access_key": IDENTITY, "secret_key": SECRET, "region": "us-east-1"}
        return pafs.S3FileSystem(endpoint_override=self.endpoint, allow_bucket_creation=True, **keys)

    def put(self, folder: Path, name: str) -> str:
        """The address of a copy of a folder. Its files come one after the other by name: input goes by their times."""
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            with self.files.open_output_stream(f"{BUCKET}/{name}/{file.relative_to(folder).as_posix()}") as sink:
                sink.write(file.read_bytes())
        return self.address(name)

    def get(self, name: str, folder: Path) -> Path:
        """A folder with a copy of what is there."""
        folder.mkdir(parents=True)
        pafs.copy_files(f"{BUCKET}/{name}", str(folder), source_filesystem=self.files)
        return folder

    def names(self, name: str) -> list[str]:
        """Of all objects below."""
        found = self.files.get_file_info(pafs.FileSelector(f"{BUCKET}/{name}", recursive=True, allow_not_found=True))
        return [one.path for one in found if one.is_file]

    def address(self, name: str) -> str:
        return f"s3a://{BUCKET}/{name}"

    @contextmanager
    def failing(self, folder: Path, **faults: float) -> Iterator["Failing"]:
        """The same store by way of tests/failing_proxy.py, a process of its own. faults: its options."""
        (port,) = free_ports(1)
        options = [part for name, value in faults.items() for part in (f"--{name}", str(value))]
        program = [sys.executable, Path(__file__).with_name("failing_proxy.py"), str(port), self.endpoint, *options]
        with (
            (folder / "proxy.log").open("wb") as log,
            subprocess.Popen(program, stdout=subprocess.PIPE, stderr=log) as proxy,
        ):
            assert proxy.stdout is not None
            assert proxy.stdout.readline() == b"ready\n"
            try:
                yield Failing(replace(self, endpoint=f"http://127.0.0.1:{port}"))
            finally:
                proxy.kill()


@dataclass(frozen=True)
class Failing:
    """store: by way of the proxy."""

    store: Store

    def counts(self) -> dict[str, int]:
        """How many requests were passed on, refused and delayed."""
        with urllib.request.urlopen(f"{self.store.endpoint}/-/counts") as answer:
            found: dict[str, int] = json.load(answer)
        return found


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Empty but for what other tests have put into folders of their own.

    Skips, with the script's own words, where no server is to be had: neither its jars nor the network are there.
    """
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("s3")
    settings = {"S3_PORT": port, "S3_RUN": folder / "run", "S3_IDENTITY": IDENTITY, "S3_CREDENTIAL": SECRET}
    with started("s3-server.sh", "S3 server", START_TIMEOUT_S, folder, **settings):
        found = Store(f"http://127.0.0.1:{port}")
        found.files.create_dir(BUCKET)
        yield found


@pytest.fixture
def at_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, with its address and keys in the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store
