"""Topics by the policies that hold for them: their own, their namespace's, the default."""

from functools import cached_property

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import encoded
from headgate.arrow.topic_names import namespaces_of, without_partitions
from headgate.core.kernels.columns import Ints
from headgate.throttle.limits.changes import Change


class TopicIndex:
    """Finds the topics whose rates a change can move without looking at the others: for many changes of many topics.

    names: full names, each once; they are looked into at the first change that does not concern all of them.
    """

    def __init__(self, names: pa.StringArray) -> None:
        self.names = names

    def concerned(self, change: Change) -> Ints:
        """Positions of the topics under a change of scope default, namespace or topic."""
        if change.scope == "default":
            return np.arange(len(self.names))
        return (self._by_namespace if change.scope == "namespace" else self._by_topic).of(change.name)

    def names_at(self, positions: Ints) -> list[str]:
        names: list[str] = self.names.take(pa.array(positions)).to_pylist()
        return names

    @cached_property
    def _by_namespace(self) -> "_Grouped":
        return _Grouped(namespaces_of(self.names))

    @cached_property
    def _by_topic(self) -> "_Grouped":
        return _Grouped(without_partitions(self.names))


class _Grouped:
    """Positions of equal names, in their order."""

    def __init__(self, names: pa.StringArray) -> None:
        values, codes = encoded(names)
        self._code_of = {name: code for code, name in enumerate(values.to_pylist())}
        self._positions = np.argsort(codes, kind="stable")
        self._ends = np.cumsum(np.bincount(codes, minlength=len(values)))

    def of(self, name: str) -> Ints:
        code = self._code_of.get(name)
        if code is None:
            return self._positions[:0]
        return self._positions[self._ends[code - 1] if code else 0 : self._ends[code]]
