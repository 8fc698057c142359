"""An answer for programs: everything that is known, unrounded; null is not limited or not known."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any


def as_json(value: Any) -> Any:
    """Values of `why.answer` as JSON has them: names in camel case, times in ISO 8601 in UTC."""
    if is_dataclass(value):
        return {_camel(one.name): as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [as_json(one) for one in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
