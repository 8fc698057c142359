"""The tables of groups and tenants from what keys said: sums, percentiles, overshoot, fairness."""

import pyarrow as pa
import pytest

from headgate.replay.fair_shares import FairShares, jain
from headgate.replay.histogram import buckets_of, upper_us
from headgate.replay.schemas import SUMS, TENANT_DELAYS, TENANT_SUMS
from headgate.replay.summary import Summary, judgement

NS_OF_A_SECOND = 1_000_000_000


def said(group="gold", tenant="acme", broker="a", *, max_delay_ns=0, **counts):
    row = {"group": group, "tenant": tenant, "broker": broker, "max_delay_ns": max_delay_ns}
    return row | dict.fromkeys(SUMS, 0) | counts


def summary_of(*rows, delays=()):
    summary = Summary("today", {"gold": (100, None)})
    for row in rows:
        summary.add("tenants", pa.Table.from_pylist([row], TENANT_SUMS))
    summary.add("delays", pa.Table.from_pylist(list(delays), TENANT_DELAYS))
    return summary


def share(broker, admitted, fair, *, worst=100, seconds=10):
    amounts = {"admitted_msgs": admitted, "fair_msgs": fair, "worst_msgs": worst}
    nothing = {"admitted_bytes": 0, "fair_bytes": 0.0, "worst_bytes": 0}
    return {"group": "gold", "broker": broker, "seconds": seconds} | amounts | nothing


def test_brokers_add_up_to_tenants_and_tenants_to_groups():
    summary = summary_of(
        said(offered_msgs=10, admitted_msgs=6, failed_msgs=3),
        said(broker="b", offered_msgs=5, admitted_msgs=5),
        said(tenant="globex", offered_msgs=1, admitted_msgs=1),
        said(group=None, tenant="other", offered_msgs=2, admitted_msgs=2),
    )
    columns = ("group", "offered_msgs", "admitted_msgs", "failed_msgs", "waiting_msgs", "brokers", "tenants")
    groups = [tuple(row[name] for name in columns) for row in summary.groups().to_pylist()]
    assert [("gold", 16, 12, 3, 1, 2, 2), (None, 2, 2, 0, 0, 1, 1)] == groups
    assert [("gold", "acme", 15), ("gold", "globex", 1), (None, "other", 2)] == [
        (row["group"], row["tenant"], row["offered_msgs"]) for row in summary.tenants().to_pylist()
    ]


def test_percentiles_are_of_messages_and_never_above_the_longest():
    buckets = buckets_of(pa.array([NS_OF_A_SECOND, 2 * NS_OF_A_SECOND]).to_numpy()).tolist()
    delays = [
        {"group": "gold", "tenant": "acme", "bucket": bucket, "messages": messages}
        for bucket, messages in zip(buckets, (60, 40), strict=True)
    ]
    (row,) = summary_of(said(max_delay_ns=2 * NS_OF_A_SECOND), delays=delays).groups().to_pylist()
    assert (100, upper_us(buckets[0]) / 1000, 2000.0, 2000.0) == (
        *(row["delayed_msgs"], row["delay_p50_ms"]),
        *(row["delay_p99_ms"], row["delay_max_ms"]),
    )


@pytest.mark.parametrize(
    ("quotas", "shares", "expected"),
    [
        ((100, None), [share("a", 600, 600.0), share("b", 500, 500.0)], (10.0, 0.0, 1.0)),
        ((100, None), [share("a", 300, 600.0), share("b", 0, 400.0, worst=250)], (0.0, 0.0, 0.5)),
        ((100, None), [share("a", 300, 300.0, worst=250)], (0.0, 150.0, 1.0)),
        ((None, None), [share("a", 300, 300.0)], (None, None, None)),
        ((0, None), [share("a", 0, 0.0)], (None, None, None)),
        ((100, None), [], (None, None, None)),
    ],
)
def test_a_group_is_judged_by_its_quota(quotas, shares, expected):
    assert pytest.approx(expected) == judgement(quotas, shares)


@pytest.mark.parametrize(
    ("ratios", "expected"), [([1, 1, 1], 1.0), ([1, 0], 0.5), ([0, 0], 0.0), ([], None), ([2, 2], 1.0)]
)
def test_jains_index(ratios, expected):
    assert expected == jain(ratios)


def test_fair_shares_are_the_exact_splits_of_all_seconds():
    columns = ("broker", "group", "class", "at_ms", "admitted_msgs", "admitted_bytes", "offered_msgs", "offered_bytes")
    rows = [
        ("a", "gold", 0, 1000, 40, 0, 90, 0),
        ("b", "gold", 0, 1500, 20, 0, 20, 0),
        ("a", "gold", 0, 2000, 9, 0, 9, 0),
    ]
    usage = pa.Table.from_pylist([dict(zip((*columns, "topics"), (*row, 0), strict=True)) for row in rows])
    shares = FairShares({"gold": (60, None)})
    shares.take(usage, 2)
    shares.take(usage.slice(0, 0), None)
    assert [("a", 49, 49.0, 60, 2), ("b", 20, 20.0, 60, 2)] == [
        (row["broker"], row["admitted_msgs"], row["fair_msgs"], row["worst_msgs"], row["seconds"])
        for row in shares.rows().to_pylist()
    ]
