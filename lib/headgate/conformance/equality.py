"""JSON equality, strict: integers, fractions, booleans and null are distinct; lists are ordered, objects are not."""

from typing import Any


def json_equal(expected: Any, got: Any) -> bool:
    """Whether both are the same JSON value. A tuple is a list, a string enumeration its string."""
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(expected) == len(got)
            and all(json_equal(left, right) for left, right in zip(expected, got, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and expected.keys() == got.keys()
            and all(json_equal(value, got[key]) for key, value in expected.items())
        )
    if isinstance(expected, str):
        return isinstance(got, str) and expected == got
    return type(expected) is type(got) and bool(expected == got)
