"""The replay of vectors whose operations say what they want to see, and of that alone (entry-cache 18)."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from headgate.conformance.equality import json_equal
from headgate.conformance.report import Mismatch
from headgate.conformance.vector_file import Vector, field_of
from headgate.errors import ConformanceError, CoreError

MISMATCHES_PER_VECTOR = 3
NOT_ARGUMENTS = frozenset({"op", "want", "error"})

Seen = Mapping[str, Callable[[], Any]]
"""What can be looked at after an operation, by key."""


class WantedAdapter(Protocol):
    """One object under replay."""

    def perform(self, op: str, arguments: Mapping[str, Any]) -> Seen:
        """Run `op` with its other fields. Raises CoreError where it is refused."""


WantedFactory = Callable[[Mapping[str, Any]], WantedAdapter]


def replay_wanted(factory: WantedFactory, vector: Vector) -> list[Mismatch]:
    """Build the object from the vector's config, perform its ops in order, and return the first mismatches.

    Of the values of an operation those are compared that it wants, of a map by id the ids that it lists.
    Raises ConformanceError for a malformed vector, also for one that wants what its kind does not tell.
    """
    return list(islice(_mismatches(factory, vector), MISMATCHES_PER_VECTOR))


def _mismatches(factory: WantedFactory, vector: Vector) -> Iterator[Mismatch]:
    config, ops = field_of(vector, "config", dict), field_of(vector, "ops", list)
    try:
        adapter = factory(config)
    except Exception as crash:  # noqa: BLE001  one broken object must not hide the other vectors
        yield Mismatch("config", "construct", {}, crashed(crash))
        return
    for place, op in enumerate(ops):
        name, want = field_of(op, "op", str), op.get("want", {})
        arguments = {key: value for key, value in op.items() if key not in NOT_ARGUMENTS}
        expected = {"error": op["error"]} if "error" in op else want
        got = _performed(adapter, name, arguments, want)
        if not json_equal(expected, got):
            yield Mismatch(f"ops[{place}]", name, expected, got)


def _performed(adapter: WantedAdapter, op: str, arguments: Mapping[str, Any], want: Mapping[str, Any]) -> Any:
    try:
        return observed(want, adapter.perform(op, arguments))
    except CoreError as refused:
        return {"error": refused.code}
    except ConformanceError:
        raise
    except Exception as crash:  # noqa: BLE001  as above
        return crashed(crash)


def observed(want: Mapping[str, Any], seen: Seen) -> dict[str, Any]:
    """The values that are wanted; of maps by id those that are listed. Raises ConformanceError for an unknown key."""
    unknown = sorted(set(want) - set(seen))
    if unknown:
        raise ConformanceError(f"malformed vector: wants {', '.join(unknown)}; known are {', '.join(seen)}")
    return {key: _as_listed(wanted, seen[key]()) for key, wanted in want.items()}


def crashed(crash: Exception) -> dict[str, str]:
    """What is reported of an operation that broke."""
    return {"crash": f"{type(crash).__name__}: {crash}"}


def _as_listed(wanted: Any, got: Any) -> Any:
    """Of a map by id what is listed, as far as it is there."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return {name: got[name] for name in wanted if name in got}
    return got
