"""The replay of vectors whose operations carry `out`, the list of all that they emit (throttle-protocol 19)."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from headgate.conformance.equality import json_equal
from headgate.conformance.report import Mismatch
from headgate.conformance.vector_file import Vector, field_of

MISMATCHES_PER_VECTOR = 3


class EmittingAdapter(Protocol):
    """One object under replay."""

    def perform(self, op: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Run `op` with its other fields, and return as JSON what it emitted, in order."""


EmittingFactory = Callable[[Mapping[str, Any]], EmittingAdapter]


def replay_emitted(factory: EmittingFactory, vector: Vector) -> list[Mismatch]:
    """Build the object from the vector's config, perform its ops in order, and return the first mismatches.

    Building it must raise ValueError where the vector says `config_error`, and nowhere else.
    Raises ConformanceError for a malformed vector.
    """
    return list(islice(_mismatches(factory, vector), MISMATCHES_PER_VECTOR))


def _mismatches(factory: EmittingFactory, vector: Vector) -> Iterator[Mismatch]:
    config, ops = field_of(vector, "config", dict), field_of(vector, "ops", list)
    refused = {"config_error": bool(vector.get("config_error", False))}
    try:
        adapter = factory(config)
    except ValueError:
        got: Any = {"config_error": True}
    except Exception as crash:  # noqa: BLE001  one broken object must not hide the other vectors
        got = _crash(crash)
    else:
        got = {"config_error": False}
    if refused != got:
        yield Mismatch("config", "construct", refused, got)
    elif not refused["config_error"]:
        for position, op in enumerate(ops):
            yield from _performed(adapter, op, f"ops[{position}]")


def _performed(adapter: EmittingAdapter, op: Any, path: str) -> Iterator[Mismatch]:
    name, expected = field_of(op, "op", str), field_of(op, "out", list)
    arguments = {key: value for key, value in op.items() if key not in {"op", "out"}}
    try:
        got: Any = adapter.perform(name, arguments)
    except Exception as crash:  # noqa: BLE001  as above
        got = _crash(crash)
    if not json_equal(expected, got):
        yield Mismatch(path, name, expected, got)


def _crash(crash: Exception) -> dict[str, str]:
    return {"crash": f"{type(crash).__name__}: {crash}"}
