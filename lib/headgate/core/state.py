"""State as plain data: integers of 64 bits, strings, booleans, None, and lists and dicts of these (rate-limiters 1)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from headgate.errors import StateError

PlainData = dict[str, Any]


class PlainState:
    """An object whose slots are all plain values: what `state` returns, `from_state` turns back into an equal object.

    The round trip is exact between any two operations (invariant I1 of rate-limiters 14).
    """

    __slots__: ClassVar[tuple[str, ...]] = ()

    def state(self) -> PlainData:
        """Parameters and state as plain data, a copy: later operations do not change it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the object that `state` was taken from. Raises StateError where the fields are not this class's."""
        check_fields(cls.__name__, state, cls.__slots__)
        rebuilt = cls.__new__(cls)
        for name in cls.__slots__:
            setattr(rebuilt, name, state[name])
        return rebuilt


def check_fields(owner: str, state: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    """Raise StateError unless `state` has exactly `fields`; the message names what is missing and what is unknown."""
    missing = sorted(set(fields) - set(state))
    unknown = sorted(set(state) - set(fields))
    if missing or unknown:
        raise StateError(f"{owner} state: missing {missing}, unknown {unknown}; write it with this version's state()")
