"""The replay of vectors whose operations carry `at_ns` and `expect` (rate-limiters 15)."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from headgate.conformance.equality import json_equal
from headgate.conformance.report import Mismatch
from headgate.conformance.vector_file import Vector, field_of
from headgate.errors import CoreError

MISMATCHES_PER_VECTOR = 3
STEP_KEYS = frozenset({"at_ns", "op", "expect"})


class UnsupportedVectorError(Exception):
    """Raised by a factory that cannot build what a vector asks for: the vector is skipped, with this reason."""


class TimedAdapter(Protocol):
    """One object under replay."""

    def perform(self, op: str, at_ns: int, arguments: Mapping[str, Any]) -> Any:
        """Run `op` at `at_ns` and return its JSON result, None for no result. Raises CoreError where it is refused."""


TimedFactory = Callable[[Mapping[str, Any]], TimedAdapter]


def replay_timed(factory: TimedFactory, vector: Vector) -> list[Mismatch]:
    """Build the object from the vector's config, perform its ops in order, and return the first mismatches.

    `construct`, where it is the first op, expects the result of building. An object that was not built answers
    every later op with that error. Raises ConformanceError for a malformed vector.
    """
    config = field_of(vector, "config", dict)
    ops = field_of(vector, "ops", list)
    return list(islice(_mismatches(factory, config, ops), MISMATCHES_PER_VECTOR))


def _mismatches(factory: TimedFactory, config: dict[str, Any], ops: list[Any]) -> Iterator[Mismatch]:
    built: list[TimedAdapter] = []
    construction = _result(lambda: built.append(factory(config)))
    constructs = bool(ops) and field_of(ops[0], "op", str) == "construct"
    expected = field_of(ops[0], "expect", object) if constructs else None
    if not json_equal(expected, construction):
        yield Mismatch("construct", "construct", expected, construction)
    steps = list(enumerate(ops))[1 if constructs else 0 :]
    if built:
        for position, op in steps:
            yield from _performed(built[0], op, f"ops[{position}]", 0)
    elif steps:
        position, op = steps[0]
        yield Mismatch(f"ops[{position}]", field_of(op, "op", str), op.get("expect"), construction)


def _performed(adapter: TimedAdapter, op: Any, path: str, base_ns: int) -> Iterator[Mismatch]:
    """Perform one op with its times relative to `base_ns`, a repeat with all its iterations."""
    name, at_ns = field_of(op, "op", str), base_ns + field_of(op, "at_ns", int)
    if name == "repeat":
        inner_ops = list(enumerate(field_of(op, "ops", list)))
        every_ns = field_of(op, "every_ns", int)
        for iteration in range(field_of(op, "times", int)):
            for position, inner in inner_ops:
                inner_path = f"{path} iteration {iteration} > ops[{position}]"
                yield from _performed(adapter, inner, inner_path, at_ns + iteration * every_ns)
        return
    expected = field_of(op, "expect", object)
    arguments = {key: value for key, value in op.items() if key not in STEP_KEYS}
    got = _result(lambda: adapter.perform(name, at_ns, arguments))
    if not json_equal(expected, got):
        yield Mismatch(path, name, expected, got)


def _result(operation: Callable[[], Any]) -> Any:
    """The operation's result, {"error": code} where the core refused it, {"crash": text} where it broke."""
    try:
        return operation()
    except CoreError as refused:
        return {"error": refused.code}
    except UnsupportedVectorError:
        raise
    except Exception as crash:  # noqa: BLE001  one broken operation must not hide the other vectors
        return {"crash": f"{type(crash).__name__}: {crash}"}
