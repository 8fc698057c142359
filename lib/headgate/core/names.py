"""Names: an unknown one is refused with the names that exist (rate-limiters 1)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from headgate.errors import InvalidArgument

Name = TypeVar("Name", bound=StrEnum)
Value = TypeVar("Value")
SHOWN = 10


def one_of(names: type[Name], value: str, argument: str) -> Name:
    """The member of `names` that `value` spells. Raises InvalidArgument, which names `argument`."""
    try:
        return names(value)
    except ValueError:
        allowed = ", ".join(names)
        raise InvalidArgument(f"{argument}: got {value!r}, allowed are {allowed}") from None


def known(values: Mapping[str, Value], name: str, noun: str) -> Value:
    """The value called `name`. Raises InvalidArgument, with the first names that exist."""
    if not isinstance(name, str) or name not in values:
        existing = ", ".join(list(values)[:SHOWN]) or "none"
        raise InvalidArgument(f"{noun}: got {name!r}, which does not exist; there are {len(values)}: {existing}")
    return values[name]


def unused(values: Mapping[str, object], name: str, noun: str) -> None:
    """Raise InvalidArgument unless `name` is a string that `values` does not hold yet."""
    if not isinstance(name, str):
        raise InvalidArgument(f"{noun}: got {name!r}, allowed is a string")
    if name in values:
        raise InvalidArgument(f"{noun}: got {name!r}, which exists already; choose another name")
