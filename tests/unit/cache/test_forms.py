"""Both forms of the rules tell the same, row for row, whatever comes, and each goes on where the other was."""

from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.cache.forms import kernel_for
from headgate.cache.step import CacheRules
from headgate.cache.stored.state import decode_broker
from headgate.core.cache.broker import Cache
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache.broker import ArrayCache
from unit.cache.runs import BROKER, MAX_BYTES, SECOND, TTL_MS, SlotRun, begun, block, change, event, rows_from, tick
from unit.cache.test_split import OPENED, event_rows, plain, unlike

ARRAYS, READABLE = (CacheRules(evictions=True, kernel=kernel) for kernel in ("numba", "python"))
POLICIES = ("pip430", "lru", "fifo", "sieve", "cursor_distance")
POLICY = "headgate.cache.policy"
BEYOND = 1 << 61
LAST = (1 << 63) - 1
DEEP = '{"x":' + 980 * "[" + 980 * "]" + "}"
DEEPER = "[" * 100_000
WIDE = f'{{"managedLedgerCacheEvictionWatermark": 1{"0" * 400}}}'
quick = settings(max_examples=examples(24))


@st.composite
def odd_rows(draw: Any) -> dict[str, Any]:
    """Rows with what may be missing, wrong, or too large for the array form."""
    row = draw(event_rows())
    wrong = {
        "topic": st.sampled_from(["", None]),
        "cursor": st.sampled_from(["", None, "new"]),
        "ledger": st.sampled_from([-1, None, 1, BEYOND, LAST]),
        "entry": st.sampled_from([-1, None, 1 << 58, BEYOND, LAST - 1, LAST]),
        "count": st.sampled_from([None, 0, 2, 3, 10_001]),
        "sizes": st.sampled_from([None, [], [1, 2], [100, 50, 10], [0, 1, 1], [1 << 31], [LAST]]),
        "seq": st.sampled_from([-1, 3]),
        "conf": st.sampled_from(
            ["{}", "[", DEEP, DEEPER, WIDE, '{"headgate.cache.maxBytes": 1152921504606846976}', '{"x": 1}']
        ),
    }
    name = draw(st.sampled_from(sorted(wrong)))
    return row | {name: draw(wrong[name])}


some_rows = st.lists(st.one_of(event_rows(), event_rows(), odd_rows()), max_size=40)


def told(values: dict[str, Any], batches: list[list[dict[str, Any]]], kernels: list[CacheRules]) -> SlotRun:
    slot = begun(values)
    for number, rows in enumerate(batches):
        slot.rules = kernels[number % len(kernels)]
        slot.batch(*([change(2 * SECOND, **{MAX_BYTES: 350})] if number == 1 else []), block(rows))
    return slot.batch(tick(10 * SECOND, finish=True))


def caches(slot: SlotRun) -> dict[str, Any]:
    return {name: plain(decode_broker(name, stored).cache) for name, stored in slot.state.brokers.items()}


@pytest.mark.parametrize("policy", POLICIES)
@quick
@given(rows=some_rows, cuts=st.lists(st.integers(0, 48), max_size=4), memory=st.sampled_from([0, 3, 4096]))
def test_both_forms_tell_the_same_row_for_row(
    policy: str, rows: list[dict[str, Any]], cuts: list[int], memory: int
) -> None:
    """Also rows that are late, that come twice, that are bad, and conf; and where each batch runs in another form."""
    values = {MAX_BYTES: 600, TTL_MS: 300, POLICY: policy, "headgate.cache.reasonMemory": memory}
    rows = [*OPENED, *rows]
    batches = [rows[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(rows)])]
    expected = told(values, batches, [READABLE])
    for kernels in ([ARRAYS], [ARRAYS, READABLE]):
        slot = told(values, batches, kernels)
        assert expected.told == slot.told
        assert caches(expected) == caches(slot)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("family", [pytest.param("fanout", marks=pytest.mark.long), "mixed"])
def test_both_forms_tell_the_same_of_traffic(policy: str, family: str) -> None:
    values = {MAX_BYTES: 60_000, POLICY: policy}
    rows = rows_from(islice(generate(family, 2, "skewed"), 600))
    rows = unlike([*rows, event("conf", 300_000, 10**6, conf={MAX_BYTES: 40_000})])
    batches = [rows[begin:end] for begin, end in pairwise([0, 1, 400, 601])]
    expected, slot = (told(values, batches, [rules]) for rules in (READABLE, ARRAYS))
    assert expected.told == slot.told
    assert expected.told["evictions"]


def test_rows_of_which_nothing_is_told_leave_no_evictions() -> None:
    rows = rows_from(islice(generate("fanout", 1), 1000))
    for kernel in ("numba", "python"):
        slot = begun({MAX_BYTES: 20_000}, CacheRules(kernel=kernel)).rows(*rows).batch(tick(SECOND, finish=True))
        assert [] == slot.told["evictions"]
        assert slot.told["metrics"]


@pytest.mark.parametrize("conf", [DEEP, DEEPER, WIDE], ids=["deep", "deeper", "wide"])
@pytest.mark.parametrize("rules", [ARRAYS, READABLE], ids=["arrays", "readable"])
def test_a_conf_that_nothing_can_be_made_of_is_a_dead_letter(conf: str, rules: CacheRules) -> None:
    slot = begun({}, rules).rows(OPEN, event("conf", 10, 1) | {"conf": conf}, event("mark", 20, 2, cursor="c", entry=0))
    assert ["bad_row"] == [letter["reason"].split(":")[0] for letter in slot.told["dead_letters"]]


OPEN = event("open", 0, 0, cursor="c", entry=0)


def add(t_us: int, entry: int, size: int = 100) -> dict[str, Any]:
    return event("add", t_us, entry + 1, entry=entry, count=1, sizes=[size])


def form_of(slot: SlotRun) -> type:
    return type(decode_broker(BROKER, slot.state.brokers[BROKER]).cache)


@pytest.mark.parametrize(
    "beyond",
    [
        event("conf", 20, 9, conf={MAX_BYTES: 1 << 60}),
        event("mark", 20, 9, cursor="c", entry=BEYOND),
    ],
    ids=["limit", "position"],
)
def test_what_has_no_array_form_goes_on_in_the_readable_one_and_back(beyond: dict[str, Any]) -> None:
    back = [
        event("conf", 30, 20, conf={MAX_BYTES: 500}),
        event("ledger_delete", 40, 21, ledger=0),
        event("mark", 50, 22, cursor="c", ledger=1, entry=0),
    ]
    slots = []
    for rules in (ARRAYS, READABLE):
        slot = begun({MAX_BYTES: 1000}, rules).rows(OPEN, add(10, 0))
        forms = [form_of(slot)]
        last = event("read", 60, 23, cursor="c", ledger=1, entry=0, sizes=[1])
        forms += [form_of(slot.rows(*rows)) for rows in ([beyond], back, [last])]
        first, then, _, now = forms
        assert [first, then, now] == ([ArrayCache, Cache, ArrayCache] if rules is ARRAYS else [Cache] * 3)
        slots.append(slot.batch(tick(60, finish=True)))
    assert slots[0].told == slots[1].told
    assert [] == slots[0].told["dead_letters"]


@pytest.mark.parametrize(
    ("values", "kernel"),
    [
        ({}, "numba"),
        ({POLICY: "cursor_distance"}, "numba"),
        ({POLICY: "s3fifo"}, "python"),
        ({"headgate.cache.release": "explicit"}, "python"),
        ({"headgate.cache.profile": "4.0"}, "python"),
    ],
)
def test_the_array_form_is_chosen_where_there_is_one(values: dict[str, Any], kernel: str) -> None:
    assert kernel == kernel_for(values, "numba")
    assert "python" == kernel_for(values, "python")


def test_the_array_form_and_the_compiler_are_loaded_only_where_they_run() -> None:
    """A worker that runs the readable form never waits for them."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    code = (
        "import sys; from unit.cache.runs import begun, event, CacheRules;"
        "begun({}, CacheRules(kernel='python')).rows(event('open', 0, 0, cursor='c', entry=0));"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="tests")
    assert "False\n" == done.stdout
