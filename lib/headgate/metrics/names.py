"""Names that become labels: as many as there is room for."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

OTHER = "other"
"""The label of all names for which there is no room."""


class Names:
    """The first `most` names have labels, for good: a series that is told once goes on being told."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    @property
    def room(self) -> int:
        """How many more there may be."""
        return self._most - len(self._names)

    def add(self, names: Iterable[str]) -> None:
        """Those that there is room for are in it from now on."""
        for name in names:
            if self.room:
                self._names.add(name)

    def have(self, names: Any) -> Any:
        """For each name of an Arrow array whether it is in it."""
        return pc.is_in(names, pa.array(self._names, pa.string()))

    def label(self, name: str) -> str:
        """The name, which is in it from now on if there is room; else OTHER."""
        if name not in self._names:
            self.add([name])
        return name if name in self._names else OTHER
