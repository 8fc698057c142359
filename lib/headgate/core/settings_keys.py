"""Kinds of settings: what a value may be, and the words for it (resource-groups 14, throttle-protocol 4)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

INT32_MAX = 2**31 - 1
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Mistake:
    """A value that is not allowed, or a key that does not exist; the reader of a file adds file and line.

    got, allowed, remedy: finished parts of the message.
    """

    key: str
    got: str
    allowed: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: got {self.got}; allowed: {self.allowed}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key: the words for what is allowed and for the default, and how a value becomes the field's.

    `read` raises ValueError for what is not allowed; it takes its own results as they are.
    """

    key: str
    allowed: str
    read: Callable[[object], object]
    default: str
    secret: bool = False

    def mistake(self, value: object) -> Mistake:
        """What to say of a value that `read` refused; secrets are not shown."""
        got = f"a {type(value).__name__}" if self.secret else shortened(value)
        return Mistake(self.key, got, self.allowed, f"correct it, or remove the line for the default ({self.default})")


def shortened(value: object) -> str:
    """`value` as a message quotes it: as Python writes it, cut to a length that fits a line."""
    written = repr(value)
    return written if len(written) <= _SHOWN_CHARACTERS else f"{written[:_SHOWN_CHARACTERS]}..."


def integer(key: str, default: int | None, low: int, high: int = INT32_MAX, *, derived: str = "unset") -> Any:
    """Declare an integer from `low` to `high`; None where it is unset. `derived`: what an unset value stands for."""

    def read(value: object) -> object:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(value)
        return value

    written = derived if default is None else str(default)
    return _declared(Setting(key, f"an integer from {low} to {high}", read, written), default)


def choice(key: str, default: StrEnum) -> Any:
    """Declare one of the names of an enumeration."""
    names = type(default)
    return _declared(Setting(key, " or ".join(names), names, default), default)


def switch(key: str, *, default: bool = False) -> Any:
    """Declare true or false."""

    def read(value: object) -> object:
        if type(value) is not bool:
            raise ValueError(value)
        return value

    return _declared(Setting(key, "true or false", read, str(default).lower()), default=default)


def text(key: str, default: str | None, allowed: str) -> Any:
    """Declare a text; it may be empty only where the default is."""

    def read(value: object) -> object:
        if not isinstance(value, str) or not (value or default == ""):
            raise ValueError(value)
        return value

    return _declared(Setting(key, allowed, read, "unset" if default is None else repr(default)), default)


def secrets(key: str) -> Any:
    """Declare texts that are never printed, by default none."""

    def read(value: object) -> object:
        texts = tuple(value) if isinstance(value, list | tuple) else (None,)
        if not all(isinstance(one, str) and one and one == one.strip() for one in texts):
            raise ValueError(value)
        return texts

    allowed = "a list of tokens, none of them empty"
    return _declared(Setting(key, allowed, read, "unset", secret=True), default=(), shown=False)


def _declared(setting: Setting, default: object, *, shown: bool = True) -> Any:
    return field(default=default, repr=shown, metadata={"setting": setting})
