"""What adapters share: a core object built from a config, and its operations by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headgate.conformance.timed import TimedAdapter
from headgate.errors import InvalidArgument

Operation = Callable[[int, Mapping[str, Any]], Any]
Core = TypeVar("Core")


class OperationTable:
    """An adapter whose operations are entries of a table: name to function of (at_ns, arguments)."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations

    def perform(self, op: str, at_ns: int, arguments: Mapping[str, Any]) -> Any:
        """Run `op`. Raises InvalidArgument for one that the kind does not have."""
        if op not in self._operations:
            raise InvalidArgument(f"op: got {op!r}, allowed are {', '.join(self._operations)}")
        return self._operations[op](at_ns, arguments)


@dataclass(frozen=True, slots=True)
class CoreKind(Generic[Core]):
    """A kind in two steps, so that the object can be stored and loaded between any two operations."""

    build: Callable[[Mapping[str, Any]], Core]
    operations: Callable[[Core], TimedAdapter]

    def __call__(self, config: Mapping[str, Any]) -> TimedAdapter:
        """The operations of a fresh object."""
        return self.operations(self.build(config))


def rate(value: int | None) -> int:
    """A rate of a config or operation as the core takes it: null stands for not limited."""
    return 0 if value is None else value
