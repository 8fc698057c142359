"""What adapters share: operations by name, unknown names refused as the core refuses them."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import InvalidArgument

Operation = Callable[[int, Mapping[str, Any]], Any]


class OperationTable:
    """An adapter whose operations are entries of a table: name to function of (at_ns, arguments)."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations

    def perform(self, op: str, at_ns: int, arguments: Mapping[str, Any]) -> Any:
        """Run `op`. Raises InvalidArgument for one that the kind does not have."""
        if op not in self._operations:
            raise InvalidArgument(f"op: got {op!r}, allowed are {', '.join(self._operations)}")
        return self._operations[op](at_ns, arguments)


def rate(value: int | None) -> int:
    """A rate of a config or operation as the core takes it: null stands for not limited."""
    return 0 if value is None else value
