"""One run of a sweep: what it counts is what the cache says, looking at it changes nothing, a sample is scaled."""

from itertools import islice

import pytest

from headgate.cache.forms import warm_up
from headgate.core.cache.broker import Cache
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.traces.sampling import sampled
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache.limits import POLICIES
from headgate.sizing import measure as measuring
from headgate.sizing.instants import Span
from headgate.sizing.measure import OF_ALL_ROWS, REASONS, SCALED, WORK, Letter, measure, summed
from headgate.sizing.trace import batches_of

ROWS = list(islice(generate("mixed", 1), 3000))
REQUEUES = "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
SPAN = Span(ROWS[0].t_us, ROWS[-1].t_us)


def given(rows):
    """Rows as a sweep reads them."""
    batches = list(batches_of(rows))
    return lambda: batches


def settings(policy: PolicyName, max_bytes: int = 100_000) -> CacheSettings:
    return CacheSettings.of({"headgate.cache.policy": policy, "headgate.cache.maxBytes": max_bytes})


def seqs_of(letters: list[tuple[DeadReason, int]]) -> Letter:
    return lambda why, event: letters.append((why, event["seq"]))


@pytest.mark.parametrize("policy", PolicyName)
def test_looking_into_a_cache_changes_nothing(policy: PolicyName) -> None:
    cache = Cache(settings(policy))
    if policy is PolicyName.BELADY:
        cache.foresee(ROWS)
    for row in ROWS:
        cache.feed(row)
    totals = cache.totals()
    found = measure(settings(policy), given(ROWS), SPAN)
    told = {name: value for name, value in totals.items() if name in found}
    assert {name: found[name] for name in told} == told
    assert found["storage_reads"] == totals["storage_ops"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("every", [1, 10])
def test_both_forms_of_the_rules_tell_the_same(policy: PolicyName, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows among them that are refused for their form, and by the state."""
    odd = [Row(ROWS[2000].t_us, 10**6, "close", "t0000", "nobody"), Row(ROWS[2500].t_us, 10**7, "read", "t0000")]
    rows = sorted([*ROWS, *odd], key=lambda row: (row.t_us, row.seq))
    letters: list[tuple[DeadReason, int]] = []

    def run() -> dict[str, int | None]:
        return measure(settings(policy), given(rows), SPAN, every=every, letter=seqs_of(letters))

    by_arrays, told = run(), letters.copy()
    letters.clear()
    monkeypatch.setattr(measuring, "refusal_of", lambda _: "for the test")
    assert run() == by_arrays
    assert letters == told
    assert told == [(DeadReason.UNKNOWN_CURSOR, 10**6), (DeadReason.BAD_ROW, 10**7)]


def test_numbers_that_arrays_cannot_calculate_with_are_left_to_the_readable_form() -> None:
    rows = [Row(5, 0, "open", "t", "c", 0, 0), Row(6, 1, "add", "t", None, 0, 1 << 62, 1, [7])]
    assert measure(settings(PolicyName.LRU), given(rows), Span(5, 6))["peak_bytes"] == 7


def test_what_the_arrays_saw_before_they_gave_up_is_not_counted() -> None:
    """300 bytes for half of the time."""
    begin = [Row(0, 0, "open", "t", "c", 0, 0), Row(1, 1, "add", "t", None, 0, 0, 3, [100])]
    first = batches_of([*begin, Row(400_000, 2, "mark", "t", "c", 0, 0)])
    second = batches_of([Row(500_000, 3, "topic_clear", "t"), Row(10**6, 4, "add", "t", None, 0, 1 << 62, 1, [7])])
    batches = [*first, *second]
    found = measure(settings(PolicyName.LRU), lambda: batches, Span(0, 10**6))
    assert found["mean_bytes"] == pytest.approx(150, abs=2)


def test_every_miss_has_a_reason() -> None:
    found = measure(settings(PolicyName.PIP430), given(ROWS), SPAN)
    assert sum(found[f"missed_{reason}"] for reason in REASONS) == found["misses"]


def test_means_are_over_event_time() -> None:
    """300 bytes for three quarters of the time, nothing before."""
    rows = [
        Row(0, 0, "open", "t", "c", 0, 0),
        Row(1_000_000, 1, "add", "t", None, 0, 0, 3, [100]),
        Row(4_000_000, 2, "mark", "t", "c", 0, 0),
    ]
    found = measure(settings(PolicyName.LRU), given(rows), Span(0, 4_000_000))
    assert found["mean_bytes"] == pytest.approx(225, abs=1)
    assert found["peak_bytes"] == 300


@pytest.mark.parametrize("is_readable", [False, True])
@pytest.mark.parametrize("end", [[], [Row(100_000_000, 3, "read", "t")], [Row(100_000_000, 3, "mark", "t", "c", 0, 1)]])
def test_a_broker_is_looked_at_until_the_trace_ends(
    end: list[Row], is_readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last row came after a second, the trace of all brokers goes on for 99; what it cached lives for one."""
    if is_readable:
        monkeypatch.setattr(measuring, "refusal_of", lambda _: "for the test")
    opened, added = Row(0, 0, "open", "t", "c", 0, 0), Row(1, 1, "add", "t", None, 0, 0, 3, [100])
    rows = [opened, added, Row(1_000_000, 2, "mark", "t", "c", 0, 0), *end]
    values = {"headgate.cache.maxBytes": 1000, REQUEUES: 0}
    found = measure(CacheSettings.of(values), given(rows), Span(0, 100_000_000))
    assert found["mean_bytes"] == pytest.approx(3, abs=1)
    assert found["expired"] == (3 if end and end[0].kind == "mark" else 0)


def test_rows_that_are_refused_are_told_and_counted() -> None:
    told: list[tuple[DeadReason, int]] = []
    rows = [Row(5, 0, "nonsense", "t"), Row(6, 1, "close", "t", "c"), Row(7, 2, "close", "", "c")]
    found = measure(settings(PolicyName.LRU), given(rows), Span(5, 7), letter=seqs_of(told))
    assert found["dead"] == 3
    assert told == [(DeadReason.UNKNOWN_KIND, 0), (DeadReason.UNKNOWN_CURSOR, 1), (DeadReason.BAD_ROW, 2)]


def test_a_sample_stands_for_as_many_entries() -> None:
    """Counts are of the whole; what a sample cannot tell is not told."""
    cut = list(sampled(ROWS, 10))
    found = measure(settings(PolicyName.LRU), given(cut), SPAN, every=10)
    whole = measure(settings(PolicyName.LRU), given(ROWS), SPAN)
    asked, asked_of_all = (one["hits"] + one["misses"] for one in (found, whole))
    assert asked == pytest.approx(asked_of_all, rel=0.05)
    assert [found[name] for name in OF_ALL_ROWS] == [None, None, None]


def test_a_trace_of_one_instant_has_a_mean() -> None:
    rows = [Row(7, 0, "open", "t", "c", 0, 0), Row(7, 1, "add", "t", None, 0, 0, 1, [100])]
    assert measure(settings(PolicyName.LRU), given(rows), Span(7, 7))["mean_bytes"] == 100


def test_brokers_are_summed_and_what_one_does_not_tell_is_not_told() -> None:
    assert summed([{"hits": 1, "storage_reads": None}, {"hits": 2, "storage_reads": 4}]) == {
        "hits": 3,
        "storage_reads": None,
    }


def test_a_run_tells_every_column() -> None:
    assert measure(settings(PolicyName.LRU), given(ROWS[:10]), SPAN).keys() == {*SCALED, *OF_ALL_ROWS, *WORK}


def test_the_array_form_can_be_made_ready() -> None:
    warm_up()
