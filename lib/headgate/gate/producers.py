"""The producers of a client's connection: limiters know them by name, the protocol by number."""

from typing import NamedTuple


class ProducerName(NamedTuple):
    """A full topic name, and what the producer is called there; "" where one of a topic is enough."""

    topic: str
    producer: str


class Producers:
    """Names and ids belong together one to one, from when a producer opened to when it closed."""

    __slots__ = ("_ids", "_names")

    def __init__(self) -> None:
        self._ids: dict[ProducerName, int] = {}
        self._names: dict[int, ProducerName] = {}

    def __len__(self) -> int:
        return len(self._names)

    def allows(self, id_: int, name: ProducerName) -> bool:
        """Whether nothing else has that id or that name."""
        return self._ids.get(name, id_) == id_ and self._names.get(id_, name) == name

    def add(self, id_: int, name: ProducerName) -> None:
        """The producer opened."""
        self._ids[name], self._names[id_] = id_, name

    def remove(self, id_: int) -> None:
        """It closed."""
        self._ids.pop(self._names.pop(id_), None)

    def ids(self) -> list[int]:
        """Of those that are open."""
        return list(self._names)

    def id_of(self, name: ProducerName) -> int | None:
        """None where there is no such producer."""
        return self._ids.get(name)

    def name_of(self, id_: int) -> ProducerName:
        """Raises KeyError where there is none."""
        return self._names[id_]
