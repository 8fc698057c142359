"""The switch between engines: which one runs the tests whose subject is tables given rows, and the run says which."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headgate")
    group.addoption(
        "--engine",
        choices=["local", "spark"],
        default="local",
        help="what runs the tests that take the fixture `engine`: the local engine, or the jobs in a Spark session",
    )
    group.addoption("--seed", type=int, default=1, help="of what the local engine shuffles in these tests")


def pytest_report_header(config: pytest.Config) -> str:
    """The line that CI repeats."""
    if config.getoption("engine") == "spark":
        return "engine: spark runs the tests of tables"
    return (
        f"engine: local runs the tests of tables, with --seed {config.getoption('seed')}; --engine spark runs them on "
        "Spark; test_engines.py compares both in any case"
    )
