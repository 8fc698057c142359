"""Rates as people write them, one above the other, and the search for the smallest one that will do."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

_SMALL = 99
_MANTISSAS = (*range(100, 200, 5), *range(200, 1000, 10))
_MOST = 2000


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


class _Search:
    """Ends with a notch that was tried and passed; the one below was tried and failed, or there is none.

    It goes away from the guess in steps that double until a notch passed and a lower one failed, then halves.
    """

    def __init__(self, guess: int, step: int) -> None:
        self.notch = guess
        self._failed, self._passed, self._step = -1, _MOST, step

    @property
    def is_over(self) -> bool:
        return self._passed - self._failed == 1

    @property
    def found(self) -> int:
        return self._passed

    def hear(self, *, passed: bool) -> None:
        if passed:
            self._passed = self.notch
            guess = self.notch - self._step
        else:
            self._failed = self.notch
            guess = self.notch + self._step
        self._step *= 2
        is_outside = not self._failed < guess < self._passed
        self.notch = (self._failed + self._passed) // 2 if is_outside else guess


def smallest(
    guesses: Mapping[str, int], passing: Callable[[Mapping[str, int]], AbstractSet[str]], step: int = 1
) -> dict[str, int]:
    """For each name the smallest notch that passes: one notch below it does not.

    guesses: where to begin; step: about how far they are off, from 1. passing: tries a notch for every name at once,
    and says which passed; names depend on their own notch alone. A high enough notch has to pass.
    """
    searches = {name: _Search(guess, step) for name, guess in guesses.items()}
    while tries := {name: search.notch for name, search in searches.items() if not search.is_over}:
        passed = passing(tries)
        for name in tries:
            searches[name].hear(passed=name in passed)
    return {name: search.found for name, search in searches.items()}
