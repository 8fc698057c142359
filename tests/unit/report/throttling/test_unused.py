"""Limits that no row came under, and conf files that limit no publish."""

import json

import pytest

from headgate.conf import load_conf
from headgate.report.throttling.unused import has_publish_limits, unused
from unit.local_runs import write_conf

POLICY = {"publishMaxMessageRate": {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1}}
GROUP = {"gold": {"publishRateInMsgs": 9, "publishRateInBytes": -1}}


def conf_of(folder, policies, groups):
    write_conf(folder, "", groups={"resourcegroups": GROUP} | groups)
    (folder / "policies.json").write_text(json.dumps(policies))
    return load_conf(folder)


def test_names_that_no_topic_has_are_told_with_their_file(tmp_path):
    topic, other = "persistent://acme/shop/orders", "persistent://acme/shop/entires"
    conf = conf_of(
        tmp_path,
        {"namespaces": {"acme/shop": POLICY, "acme/shp": POLICY}, "topics": {topic: POLICY, other: POLICY}},
        {"tenants": {"acme": "gold", "acmee": "gold"}, "namespaces": {"x/y": "gold"}, "topics": {topic: "gold"}},
    )

    assert unused(conf, [f"{topic}-partition-3"]) == [
        "namespace acme/shp (policies.json)",
        f"topic {other} (policies.json)",
        "tenant acmee (resource-groups.json)",
        "namespace x/y (resource-groups.json)",
    ]


def test_a_group_that_nothing_is_attached_to_is_told(tmp_path):
    assert unused(conf_of(tmp_path, {}, {}), []) == ["group gold (resource-groups.json: attached to nothing)"]


@pytest.mark.parametrize(
    ("policies", "groups", "broker", "expected"),
    [
        ({}, {}, {}, False),
        ({}, {"tenants": {"acme": "gold"}}, {}, True),
        ({"namespaces": {"a/n": POLICY}}, {}, {}, True),
        ({}, {}, {"maxPublishRatePerTopicInMessages": 1}, True),
        ({}, {}, {"brokerPublisherThrottlingMaxByteRate": 1}, True),
        ({}, {}, {"dispatchThrottlingRateInMsg": 1}, False),
    ],
)
def test_a_limit_counts_if_it_can_hold_a_publish(tmp_path, policies, groups, broker, expected):
    conf_of(tmp_path, policies, groups)
    with (tmp_path / "broker.conf").open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in broker.items())

    assert expected == has_publish_limits(load_conf(tmp_path))
