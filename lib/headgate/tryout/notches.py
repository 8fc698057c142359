"""Rates as people write them, one above the other, and the search for the smallest one that will do."""

from bisect import bisect_left
from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

_SMALL = 99
_MANTISSAS = (*range(100, 200, 5), *range(200, 1000, 10))
_MOST = 2000

Tried = TypeVar("Tried")
Found = TypeVar("Found")


def rate_at(notch: int) -> int:
    """The rate of a notch from 0: 1 to 99, then 100, 105 ... 195, 200, 210 ... 990 times powers of ten.

    From 100 on each is at most 5 % above the one before.
    """
    if notch < _SMALL:
        return notch + 1
    decade, place = divmod(notch - _SMALL, len(_MANTISSAS))
    return int(_MANTISSAS[place] * 10**decade)


def notch_from(rate: float) -> int:
    """The lowest notch whose rate is not below `rate`."""
    return bisect_left(range(_MOST), rate, key=rate_at)


class Search:
    """Ends with the smallest notch that passes: it was tried, and the one below was tried and failed, or there is none.

    It goes away from the guess in steps that double until a notch passed and a lower one failed, then halves. A high
    enough notch has to pass. notch: to be tried next. step: about how far the guess is off, from 1. lowest: the ones
    below it are not asked for.
    """

    def __init__(self, guess: int, step: int = 1, *, lowest: int = 0) -> None:
        self.notch = max(guess, lowest)
        self._failed, self._passed, self._step = lowest - 1, _MOST, step

    @property
    def is_over(self) -> bool:
        """Whether `found` is."""
        return self._passed - self._failed == 1

    @property
    def found(self) -> int:
        """The smallest notch that passes."""
        return self._passed

    def hear(self, *, passed: bool) -> None:
        """Take in what became of `notch`."""
        if passed:
            self._passed = self.notch
            guess = self.notch - self._step
        else:
            self._failed = self.notch
            guess = self.notch + self._step
        self._step *= 2
        is_outside = not self._failed < guess < self._passed
        self.notch = (self._failed + self._passed) // 2 if is_outside else guess


def together(
    courses: Mapping[str, Generator[Tried, bool, Found]], passing: Callable[[dict[str, Tried]], AbstractSet[str]]
) -> dict[str, Found]:
    """What each of the courses returns, with one call of `passing` for what all of them try next.

    courses: by name; they yield what is to be tried, and are sent whether it passed.
    """
    found: dict[str, Found] = {}
    tries = {name: next(course) for name, course in courses.items()}
    while tries:
        passed, tried, tries = passing(tries), tries, {}
        for name in tried:
            try:
                tries[name] = courses[name].send(name in passed)
            except StopIteration as end:
                found[name] = end.value
    return found
