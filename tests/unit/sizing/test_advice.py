"""What is recommended from a sweep, and what is not."""

import json

import pytest

from headgate.report.replay.html import NO_BREAK
from headgate.report.sweep import words
from headgate.report.sweep.html import write_report
from headgate.sizing.advice import advise
from headgate.sizing.measure import OF_ALL_ROWS, SCALED, WORK

MIB_BYTES = 1 << 20
TTL = "managedLedgerCacheEvictionTimeThresholdMillis"
REQUEUES = "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"


def row(number: int, mib: int, missed: int, policy: str = "pip430", **others: object) -> dict:
    """A combination under which so many of 1000 entries came from storage, 1024 bytes each."""
    changed = others.pop("changed", {})
    counts = dict.fromkeys((*SCALED, *OF_ALL_ROWS, *WORK), 0) | dict.fromkeys(
        ("mean_bytes", "mean_pinned_bytes", "peak_pinned_bytes"), mib * MIB_BYTES // 2
    )
    return {
        "combination": number,
        "broker": None,
        "is_present": number == 0,
        "policy": policy,
        "max_bytes": mib * MIB_BYTES,
        "changed": json.dumps(changed),
        "conf": json.dumps({TTL: 1000, REQUEUES: 5}),
        "sample": 1,
        **counts,
        "hits": 1000 - missed,
        "misses": missed,
        "storage_bytes": missed * 1024,
        "storage_reads": missed,
        "missed_expired": missed,
        "cpu_s": 1.0,
        **others,
    }


NOW = row(0, 4, 500)
ROWS = [
    NOW,
    row(1, 4, 430, changed={TTL: 5000}),
    row(2, 4, 428, changed={TTL: 5000, REQUEUES: 9}),
    row(3, 4, 300, policy="cursor_distance"),
    row(4, 4, 250, policy="belady"),
    row(5, 8, 400),
    row(6, 8, 340, changed={TTL: 5000}),
    row(7, 16, 338, changed={TTL: 5000}),
]


def test_of_equally_good_changes_the_one_whose_entries_keep_least_memory_is_advised() -> None:
    lean = row(9, 4, 430, changed={TTL: 6000}, mean_pinned_bytes=MIB_BYTES, mean_bytes=3 * MIB_BYTES)
    assert advise([NOW, ROWS[1], lean]).keys is lean
    sampled = [row(n, 4, 430, changed={TTL: n}, mean_pinned_bytes=None, mean_bytes=n) for n in (7000, 6000)]
    assert advise([NOW, *sampled]).keys is sampled[1]


def test_of_changes_that_are_nearly_as_good_the_fewest_keys_are_advised() -> None:
    assert advise(ROWS).keys is ROWS[1]


def test_of_sizes_that_are_nearly_as_good_the_smallest_is_advised() -> None:
    assert advise(ROWS).size is ROWS[6]


def test_policies_that_no_broker_has_are_a_yardstick_and_belady_the_bound() -> None:
    advice = advise(ROWS)
    assert (advice.yardstick, advice.bound) == (ROWS[3], ROWS[4])


def test_a_policy_that_no_broker_has_is_compared_with_itself_where_it_is_the_conf_of_now() -> None:
    rows = [row(0, 4, 500, policy="lru"), row(1, 8, 400, policy="lru"), row(2, 4, 450, policy="sieve")]
    advice = advise(rows)
    assert (advice.size, advice.yardstick) == (rows[1], rows[2])


def test_another_policy_of_pulsar_is_advised_where_it_does_better_than_keys() -> None:
    other = row(8, 4, 387, policy="by_mark_delete", changed={TTL: 5000})
    advice = advise([*ROWS, other, row(9, 4, 420, policy="size_proportional")])
    assert (advice.policy, advice.yardstick) == (other, ROWS[3])
    assert list(words.recommendation(advice))[1] == (
        f"Policy by_mark_delete, one of Pulsar's own, with {TTL}=5000, would read 10 % fewer bytes from storage at "
        "this size than the advised keys."
    )
    assert advise([*ROWS, row(8, 4, 428, policy="by_mark_delete")]).policy is None


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (2000, "1.953 KiB"),
        (MIB_BYTES // 2, "0.5 MiB"),
        (3 * MIB_BYTES // 2, "1.5 MiB"),
        (2048 * MIB_BYTES, "2 GiB"),
        (20_000 << 40, "20,000 TiB"),
    ],
)
def test_sizes_are_told_in_units_that_fit(size_bytes: int, told: str) -> None:
    assert words.size(size_bytes) == told


def test_what_brings_less_than_a_hundredth_is_not_advised() -> None:
    advice = advise([NOW, row(1, 4, 496, changed={TTL: 5000}), row(2, 8, 497)])
    assert (advice.keys, advice.size) == (None, None)


def test_a_smaller_cache_that_reads_hardly_more_is_named() -> None:
    smaller = row(1, 1, 510)
    advice = advise([NOW, smaller, row(2, 2, 505), row(3, 8, 500)])
    assert advice.smaller is smaller
    assert "1 MiB would do instead of 4 MiB: 1.0 points more" in list(words.recommendation(advice))[1]


def test_the_recommendation_says_what_to_set_and_what_it_brings() -> None:
    keys, size = words.recommendation(advise(ROWS))
    assert keys == (
        f"At 4 MiB, set {TTL} to 5000 (now 1000): 14 % fewer bytes from storage and 14 % fewer storage reads, misses "
        "50 % to 43 %; its entries keep 2 MiB of memory on average and 2 MiB at most (now 2 MiB and 2 MiB)."
    )
    assert size.startswith(f"Raise the cache from 4 MiB to 8 MiB, with {TTL}=5000: 32 % fewer bytes from storage")


def test_the_largest_size_that_was_tried_is_called_so() -> None:
    _, told = words.recommendation(advise(ROWS[:-1]))
    assert told.startswith(f"Raise the cache from 4 MiB to 8 MiB, the largest that was tried, with {TTL}=5000: 32 %")


def test_the_reasons_are_those_of_what_is_missed_now() -> None:
    told = list(words.why(advise(ROWS)))
    assert any(line.startswith("Of what is missed now: 100 % had expired") for line in told)
    assert any("(belady) 25 % would be missed" in line for line in told)
    assert (
        "A rule that brokers do not have, cursor_distance, would read 30 % fewer bytes from storage at this size than "
        "the advised keys."
    ) in told


def test_changes_at_other_sizes_are_told_against_the_same_size() -> None:
    assert [line.split(": ")[1].split(" and ")[0] for line in words.at_other_sizes(advise(ROWS))] == [
        "15 % fewer bytes from storage"
    ]


def test_a_trace_without_reads_says_nothing() -> None:
    nothing = [row(0, 4, 0, hits=0), row(1, 2, 0, hits=0)]
    assert ["No entry was read in this trace, so it says nothing of caches: take one with reads."] == list(
        words.recommendation(advise(nothing))
    )


def test_a_trace_without_reads_from_storage_has_nothing_to_advise() -> None:
    advice = advise([row(0, 4, 0), row(1, 8, 0)])
    assert (advice.keys, advice.size, advice.reasons) == (None, None, [])


@pytest.mark.parametrize(("hits", "lines"), [("whole", 2), ("entry", 1)])
def test_a_sample_says_how_far_it_can_be_trusted(hits: str, lines: int) -> None:
    conf = json.dumps({words.RANGE_HITS: hits})
    told = list(words.of_sample(row(0, 4, 500, sample=10, conf=conf)))
    assert told[0].startswith("These are estimates of a sample: one entry in 10, in caches 10 times smaller.")
    assert lines == len(told)
    assert [] == list(words.of_sample(row(0, 4, 500, conf=conf)))


@pytest.mark.parametrize("sample", [1, 10])
def test_the_report_has_the_advice_the_pictures_and_what_belady_is(tmp_path, sample: int) -> None:
    unknown = dict.fromkeys(OF_ALL_ROWS) if sample > 1 else {}
    rows = [{**one, **unknown, "sample": sample} for one in ROWS]
    rows += [{**one, "broker": broker} for one in rows for broker in ("<b>1", "b2")]
    path = write_report(rows, str(tmp_path), "a & b")
    text = (tmp_path / "report.html").read_text()
    assert f"set {TTL} to 5000 (now 1000): 14 % fewer" in text
    assert text.count("<img") == 5
    assert "Where sizes differ belady is a yardstick" in text
    assert "a &amp; b" in text
    assert f'<td class="name">16{NO_BREAK}MiB</td>' in text
    assert "<b>1" not in text
    assert ("one entry in 10" in text) == (sample == 10)
    if sample == 1:
        assert write_report(rows, str(tmp_path), "a & b") == path
        assert (tmp_path / "report.html").read_text() == text
