"""How many examples a property is tried on."""

from hypothesis import settings

WHOLE = 100
"""max_examples of the profile `long`, which tries all of them: ./tests/run tests/unit --hypothesis-profile=long."""


def examples(count: int) -> int:
    """Of `count` the part that the chosen profile tries."""
    return max(1, count * settings.default.max_examples // WHOLE)
