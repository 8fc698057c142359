"""resource-groups.json takes Pulsar's payloads; a topic belongs to one group at most."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conf import ResourceGroup, ResourceGroups
from headgate.conf.findings import INT64_MAX, Findings
from headgate.conf.resource_groups import read_resource_groups

GOLD: dict[str, Any] = {"gold": {"publishRateInMsgs": 1000}}
RATES = (
    "dispatchRateInBytes, dispatchRateInMsgs, publishRateInBytes, publishRateInMsgs, "
    "replicationDispatchRateInBytes, replicationDispatchRateInMsgs, replicatorDispatchRate"
)


def read(value: object) -> tuple[ResourceGroups, Findings]:
    findings = Findings()
    return read_resource_groups(json.dumps(value), "resource-groups.json", findings), findings


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, ResourceGroup()),
        (
            {"publishRateInMsgs": -1, "publishRateInBytes": -1, "dispatchRateInMsgs": -1, "dispatchRateInBytes": -1},
            ResourceGroup(),
        ),
        ({"publishRateInMsgs": None}, ResourceGroup()),
        ({"publishRateInMsgs": 0, "dispatchRateInBytes": 0}, ResourceGroup(0, None, None, 0)),
        (
            {"publishRateInMsgs": 1, "publishRateInBytes": 2, "dispatchRateInMsgs": 3, "dispatchRateInBytes": 4},
            ResourceGroup(1, 2, 3, 4),
        ),
        (
            {"publishRateInMsgs": 2147483647, "publishRateInBytes": INT64_MAX},
            ResourceGroup(2147483647, INT64_MAX),
        ),
    ],
)
def test_a_groups_rates_are_read_and_minus_1_null_and_missing_are_not_limited(
    payload: object, expected: ResourceGroup
) -> None:
    conf, findings = read({"resourcegroups": {"gold": payload}})
    assert ({"gold": expected}, []) == (conf.groups, findings.mistakes)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("persistent://acme/orders/new", "topic-group"),
        ("persistent://acme/orders/new-partition-12", "topic-group"),
        ("acme/orders/new", "topic-group"),
        ("non-persistent://acme/orders/new", "namespace-group"),
        ("persistent://acme/orders/old", "namespace-group"),
        ("persistent://acme/orders/new/er", "namespace-group"),
        ("persistent://acme/other/new", "tenant-group"),
        ("persistent://globex/orders/new", None),
        ("new", None),
        ("http://acme/orders/new", None),
        ("", None),
    ],
)
def test_a_topics_group_is_its_own_else_its_namespaces_else_its_tenants(topic: str, expected: str | None) -> None:
    conf, findings = read(
        {
            "resourcegroups": {"topic-group": {}, "namespace-group": {}, "tenant-group": {}},
            "tenants": {"acme": "tenant-group"},
            "namespaces": {"acme/orders": "namespace-group"},
            "topics": {"acme/orders/new": "topic-group"},
        }
    )
    assert findings.mistakes == []
    assert expected == conf.group_of(topic)


def test_attachments_are_plain_dictionaries_by_full_name() -> None:
    conf, _ = read({"resourcegroups": GOLD, "tenants": {"acme": "gold"}, "topics": {"a/b/c": "gold"}})
    assert (conf.tenants, conf.namespaces, conf.topics) == ({"acme": "gold"}, {}, {"persistent://a/b/c": "gold"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"resourcegroups": GOLD, "tenants": {"acme": "glod"}},
            "tenants.acme: got the unknown group 'glod'; allowed: gold; did you mean gold?",
        ),
        (
            {"topics": {"a/b/c": "gold"}},
            (
                "topics.\"a/b/c\": got the unknown group 'gold'; allowed: none is defined; "
                "define it under resourcegroups, or delete the attachment"
            ),
        ),
        (
            {"namespaces": {"a/b": 3}},
            'namespaces."a/b": got 3; allowed: the name of a resource group; write a name, or delete the entry',
        ),
        (
            {"resourcegroups": GOLD, "namespaces": {"a": "gold"}},
            "namespaces.a: got this name; allowed: tenant/namespace; correct the name",
        ),
        (
            {"resourcegroups": GOLD, "tenants": {"a/b": "gold"}},
            'tenants."a/b": got this name; allowed: a tenant\'s name: A-Z a-z 0-9 _ - = : .; correct the name',
        ),
        (
            {"resourcegroups": {"go ld": {}}},
            'resourcegroups."go ld": got this name; allowed: 1 to 250 of A-Z a-z 0-9 _ - = : .; correct the name',
        ),
        (
            {"resourcegroups": {"gold": {"publishRateInMsgs": -1.0}}},
            (
                "resourcegroups.gold.publishRateInMsgs: got -1.0; allowed: an integer from 0 to 2147483647; "
                "write -1 or null for not limited, 0 to block"
            ),
        ),
        (
            {"resourcegroups": {"gold": {"dispatchRateInMsgs": 2147483648}}},
            (
                "resourcegroups.gold.dispatchRateInMsgs: got 2147483648; allowed: an integer from 0 to 2147483647; "
                "write -1 or null for not limited, 0 to block"
            ),
        ),
        (
            {"resourcegroups": {"gold": {"publishRateInBytes": -2}}},
            (
                f"resourcegroups.gold.publishRateInBytes: got -2; allowed: an integer from 0 to {INT64_MAX}; "
                "write -1 or null for not limited, 0 to block"
            ),
        ),
        (
            {"resourcegroups": {"gold": {"publishRateInMsg": 5}}},
            (
                f"resourcegroups.gold.publishRateInMsg: got an unknown key; allowed: {RATES}; "
                "did you mean publishRateInMsgs?"
            ),
        ),
        (
            {"resourceGroups": {}},
            (
                "resourceGroups: got an unknown key; allowed: namespaces, resourcegroups, tenants, topics; "
                "did you mean resourcegroups?"
            ),
        ),
    ],
)
def test_a_mistake_names_the_path_and_the_nearest_name(value: object, expected: str) -> None:
    assert [f"resource-groups.json line 1: {expected}"] == read(value)[1].mistakes


def test_the_attachments_of_a_group_with_a_mistake_are_not_reported_again() -> None:
    groups = {"gold": {"publishRateInMsgs": -2}, "go ld": {}}
    assert len(read({"resourcegroups": groups, "tenants": {"a": "gold", "b": "go ld"}})[1].mistakes) == 2


def test_replication_rates_are_accepted_with_a_warning() -> None:
    rates = {
        "replicationDispatchRateInMsgs": 5,
        "replicationDispatchRateInBytes": -1,
        "replicatorDispatchRate": {"west->east": {}},
    }
    conf, findings = read({"resourcegroups": {"gold": rates}})
    assert ({"gold": ResourceGroup()}, []) == (conf.groups, findings.mistakes)
    assert findings.warnings == [
        f"resource-groups.json line 1: resourcegroups.gold.{key}: replication is never limited by a group"
        for key in ("replicationDispatchRateInMsgs", "replicatorDispatchRate")
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["gold", "a/b", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["gold", "a", "a/b/c", "a/b", *RATES.split(", ")]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["resourcegroups", "tenants", "namespaces", "topics"]), VALUES))
def test_no_value_makes_reading_fail(value: object) -> None:
    read(value)
