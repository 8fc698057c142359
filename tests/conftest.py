"""The switch between engines: which one runs the tests whose subject is tables given rows, and the run says which.

And how many examples properties are tried on: a quarter of them in the suite, all with --hypothesis-profile=long.
"""

import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

import headgate.core
from certificates import certificates
from examples import WHOLE
from headgate.engines.kernel_units import CACHE, DISPATCH, PROTOCOL, PUBLISH, QUOTAS, load_units
from stub_store import no_store

__all__ = ["certificates", "no_store"]

CORE = Path(headgate.core.__file__).parent
COMPILED = "headgate/compiled"
LONG = tuple(f"tests/{name}/" for name in ("integration", "unit/tryout", "unit/throttle", "unit/quota_loop"))

STARTED = {
    "brokers": re.compile(r"\b(kafka_broker|kafka_cluster|pulsar_standalone):"),
    "Spark": re.compile(r"\b(spark|spark_of_all_tests|on_spark|each_engine|sessions)[:,)]"),
}
"""What is started once for several files, by the arguments of tests that ask for it."""

# How fast an example runs is no test.
settings.register_profile("suite", max_examples=WHOLE // 4, deadline=None)
settings.register_profile("long", max_examples=WHOLE, deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headgate")
    group.addoption(
        "--engine",
        choices=["local", "spark"],
        default="local",
        help="what runs the tests that take the fixture `engine`: the local engine, or the jobs in a Spark session",
    )
    group.addoption("--seed", type=int, default=1, help="of what the local engine shuffles in these tests")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where several processes share the tests, all kernels are compiled before they start: no two compile the same.

    That they are compiled is noted, as to load them here takes 4 s.
    """
    if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
        return
    noted, sources = getattr(session.config, "cache", None), _digest_of_core()
    if noted is None or noted.get(COMPILED, None) != sources or not any(CORE.rglob("*.nbc")):
        with ProcessPoolExecutor(max_workers=2) as processes:
            list(processes.map(load_units, ([unit] for unit in (CACHE, PROTOCOL, DISPATCH, QUOTAS, PUBLISH))))
        if noted is not None:
            noted.set(COMPILED, sources)


def _digest_of_core() -> str:
    """Of all that machine code is compiled from."""
    digest = sha256(f"{sys.version} {version('numba')}".encode())
    for source in sorted(CORE.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class ByFile(LoadScopeScheduling):
    """Processes share the suite file by file, but files with a Spark session stay together, and those with brokers.

    So each of these starts once.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _starts(self.config.rootpath / file) or file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files come first: at the end, no process waits for one of them."""
    items.sort(key=lambda item: next((n for n, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)))


@cache
def _starts(file: Path) -> str | None:
    """What tests in this file need started; None for nothing."""
    text = file.read_text()
    return next((what for what, fixture in STARTED.items() if fixture.search(text)), None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    """Where `--dist loadfile` is asked for."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_report_header(config: pytest.Config) -> str:
    """The line that CI repeats."""
    if config.getoption("engine") == "spark":
        return "engine: spark runs the tests of tables"
    return (
        f"engine: local runs the tests of tables, with --seed {config.getoption('seed')}; --engine spark runs them on "
        "Spark; test_engines.py compares both in any case"
    )
