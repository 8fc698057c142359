"""Rates as people write them, and the search for the smallest that will do."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.tryout.notches import Search, notch_from, rate_at, together


def test_rates_are_short_numbers_close_to_each_other():
    rates = [rate_at(notch) for notch in range(600)]
    assert rates[97:103] == [98, 99, 100, 105, 110, 115]
    assert rates[118:121] == [195, 200, 210]
    assert all(below < rate <= below * 1.0501 for below, rate in pairwise(rates[99:]))


@given(st.integers(1, 10**12))
def test_a_rate_is_rounded_up_to_the_next_notch(rate):
    notch = notch_from(rate)
    assert rate_at(notch) >= rate
    assert notch == 0 or rate_at(notch - 1) < rate


def smallest(guesses, passing, step=1):
    def course(guess):
        search = Search(guess, step)
        while not search.is_over:
            search.hear(passed=(yield search.notch))
        return search.found

    return together({name: course(guess) for name, guess in guesses.items()}, passing)


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 400), st.integers(0, 400))), st.integers(1, 4))
def test_the_smallest_notch_is_found_from_any_guess_for_all_names_at_once(wanted, step):
    runs = []

    def passing(tries):
        runs.append(dict(tries))
        return {name for name, notch in tries.items() if notch >= wanted[name][0]}

    found = smallest({name: guess for name, (_, guess) in wanted.items()}, passing, step)
    assert found == {name: notch for name, (notch, _) in wanted.items()}
    tried = {(name, notch) for run in runs for name, notch in run.items()}
    assert all((name, notch) in tried and (notch == 0 or (name, notch - 1) in tried) for name, notch in found.items())


def test_a_good_guess_takes_two_runs():
    runs = []

    def passing(tries):
        runs.append(tries)
        return {name for name, notch in tries.items() if notch >= 50}

    assert smallest({"a": 50, "b": 49}, passing) == {"a": 50, "b": 50}
    assert len(runs) == 2


def test_what_is_found_passed_and_the_notch_below_failed_also_where_more_is_not_always_better():
    passes = {3, 8, 9, 12, *range(14, 3000)}
    found = smallest({"a": 11}, lambda tries: {name for name, notch in tries.items() if notch in passes})["a"]
    assert found in passes
    assert found - 1 not in passes
