"""policies.json takes what Pulsar's admin API takes and returns."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conf import DispatchRate, Policies, PublishRate, RatePolicies, SubscribeRate
from headgate.conf.findings import INT64_MAX, INT64_MIN, Findings
from headgate.conf.policies import read_policies

TOPIC = "persistent://a/b/c"
MSG, BYTE = "publishThrottlingRateInMsg", "publishThrottlingRateInByte"
RATE64 = f"an integer from {INT64_MIN} to {INT64_MAX}"
OFF_OR_NONE = "correct it; 0 or below is off, and null instead of the object is no policy"
NAMES = (
    "clusterDispatchRate, clusterSubscribeRate, dispatchRate, publishMaxMessageRate, publishRate, "
    "replicatorDispatchRate, subscribeRate, subscriptionDispatchRate, topicDispatchRate"
)


def read(value: Any) -> tuple[Policies, Findings]:
    findings = Findings()
    text = value if isinstance(value, str) else json.dumps(value)
    return read_policies(text, "policies.json", findings), findings


def namespace(policies: object) -> RatePolicies:
    conf, findings = read({"namespaces": {"a/b": policies}})
    assert findings.mistakes == []
    return conf.namespaces["a/b"]


def mistakes_of(value: Any) -> list[str]:
    return read(value)[1].mistakes


def dispatch(messages: int) -> dict[str, object]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": True,
        "ratePeriodInSecond": 2,
    }


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, RatePolicies()),
        ({"publishRate": None}, RatePolicies()),
        ({"publishRate": {MSG: 5}}, RatePolicies(publish=PublishRate(5, 0))),
        ({"publishRate": {MSG: 5, BYTE: 7}}, RatePolicies(publish=PublishRate(5, 7))),
        ({"publishRate": {MSG: -1, BYTE: 0}}, RatePolicies(publish=PublishRate(0, 0))),
        ({"publishMaxMessageRate": {"west": {MSG: 5, BYTE: 7}}}, RatePolicies(publish=PublishRate(5, 7))),
        ({"publishMaxMessageRate": {"west": {MSG: 5}, "east": {MSG: 5}}}, RatePolicies(publish=PublishRate(5, 0))),
        ({"publishMaxMessageRate": {}}, RatePolicies()),
        ({"publishMaxMessageRate": {"west": {MSG: 5}, "east": None}}, RatePolicies(publish=PublishRate(5, 0))),
        ({"publishRate": {MSG: 5}, "publishMaxMessageRate": {}}, RatePolicies(publish=PublishRate(5, 0))),
        ({"dispatchRate": dispatch(3)}, RatePolicies(dispatch=DispatchRate(3, 0, 2, True))),
        ({"dispatchRate": {"dispatchThrottlingRateInByte": 9}}, RatePolicies(dispatch=DispatchRate(0, 9, 1, False))),
        (
            {"topicDispatchRate": {"west": dispatch(3)}, "clusterDispatchRate": {"west": dispatch(4)}},
            RatePolicies(dispatch=DispatchRate(3, 0, 2, True)),
        ),
        (
            {"topicDispatchRate": {}, "clusterDispatchRate": {"west": dispatch(4)}},
            RatePolicies(dispatch=DispatchRate(4, 0, 2, True)),
        ),
        (
            {"subscriptionDispatchRate": {"west": dispatch(3)}, "replicatorDispatchRate": {"west->east": dispatch(4)}},
            RatePolicies(
                subscription_dispatch=DispatchRate(3, 0, 2, True), replicator_dispatch=DispatchRate(4, 0, 2, True)
            ),
        ),
        ({"subscribeRate": {"subscribeThrottlingRatePerConsumer": 6}}, RatePolicies(subscribe=SubscribeRate(6, 30))),
        (
            {"clusterSubscribeRate": {"west": {"subscribeThrottlingRatePerConsumer": 6, "ratePeriodInSecond": 10}}},
            RatePolicies(subscribe=SubscribeRate(6, 10)),
        ),
    ],
)
def test_policies_are_read_in_every_form_of_the_admin_api(policies: object, expected: RatePolicies) -> None:
    assert expected == namespace(policies)


def test_a_whole_namespace_dump_loads_and_its_other_keys_give_one_warning() -> None:
    dump: dict[str, object] = {
        "auth_policies": {"namespaceAuth": {}, "topicAuthentication": {}},
        "replication_clusters": ["west"],
        "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        "publishMaxMessageRate": {"west": {MSG: 10, BYTE: 20}},
        "latency_stats_sample_rate": {},
        "retention_policies": None,
        "subscription_auth_mode": "None",
        "replicatorDispatchRateMap": {},
        "properties": {},
        "resource_group_name": None,
    }
    conf, findings = read({"namespaces": {"a/b": dump}})
    assert RatePolicies(publish=PublishRate(10, 20)) == conf.namespaces["a/b"]
    assert findings.mistakes == []
    assert findings.warnings == [
        (
            "policies.json: ignored, as they are not rate policies: auth_policies, backlog_quota_map, bundles, "
            "latency_stats_sample_rate, properties, replication_clusters, replicatorDispatchRateMap, "
            "resource_group_name, "
            "retention_policies, "
            "subscription_auth_mode"
        )
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("persistent://a/b/c", "persistent://a/b/c"),
        ("non-persistent://a/b/c", "non-persistent://a/b/c"),
        ("a/b/c", "persistent://a/b/c"),
        ("a/b/c/d", "persistent://a/b/c/d"),
    ],
)
def test_topics_are_kept_by_their_full_names(name: str, expected: str) -> None:
    assert [expected] == list(read({"topics": {name: {}}})[0].topics)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[]", "policies.json: got []; allowed: an object; write { ... }"),
        (
            "{",
            (
                "policies.json line 1: got no JSON (Expecting property name enclosed in double quotes at column 2); "
                "allowed: a JSON object; correct the syntax"
            ),
        ),
        (
            '{"topics": {},\n "namespaces": }',
            (
                "policies.json line 2: got no JSON (Expecting value at column 16); allowed: a JSON object; "
                "correct the syntax"
            ),
        ),
        (
            '{"topics":\n "a\tb"}',
            (
                "policies.json line 2: got no JSON (Invalid control character at column 4); "
                "allowed: a JSON object; correct the syntax"
            ),
        ),
        (
            "",
            (
                "policies.json line 1: got no JSON (Expecting value at column 1); allowed: a JSON object; "
                "correct the syntax"
            ),
        ),
        (
            {"topic": {}},
            "policies.json line 1: topic: got an unknown key; allowed: namespaces, topics; did you mean topics?",
        ),
        ({"topics": []}, "policies.json line 1: topics: got []; allowed: an object; write { ... }"),
        (
            {"topics": {TOPIC: {"publishRate": {MSG: "5"}}}},
            f"policies.json line 1: topics.\"{TOPIC}\".publishRate.{MSG}: got '5'; allowed: {RATE64}; {OFF_OR_NONE}",
        ),
        (
            {"topics": {TOPIC: {"publishRate": {MSG: 1.0}}}},
            f'policies.json line 1: topics."{TOPIC}".publishRate.{MSG}: got 1.0; allowed: {RATE64}; {OFF_OR_NONE}',
        ),
        (
            {"topics": {TOPIC: {"publishRate": {MSG: True}}}},
            f'policies.json line 1: topics."{TOPIC}".publishRate.{MSG}: got True; allowed: {RATE64}; {OFF_OR_NONE}',
        ),
        (
            {"topics": {TOPIC: {"publishRate": {BYTE: INT64_MAX + 1}}}},
            (
                f'policies.json line 1: topics."{TOPIC}".publishRate.{BYTE}: got {INT64_MAX + 1}; '
                f"allowed: {RATE64}; {OFF_OR_NONE}"
            ),
        ),
        (
            {"namespaces": {"a/b": {"publishRate": {"publishThrottlingRateInMsgs": 1}}}},
            (
                'policies.json line 1: namespaces."a/b".publishRate.publishThrottlingRateInMsgs: got an unknown key; '
                f"allowed: {BYTE}, {MSG}; did you mean {MSG}?"
            ),
        ),
        (
            {"namespaces": {"a/b": {"publishRates": {MSG: 1}}}},
            (
                f'policies.json line 1: namespaces."a/b".publishRates: got an unknown key; allowed: {NAMES}; '
                "did you mean publishRate?"
            ),
        ),
        (
            {"namespaces": {"a/b": {"publishRate": {}}}},
            (
                'policies.json line 1: namespaces."a/b".publishRate: got an empty object; '
                "allowed: an object with rates, or null; write null for no policy"
            ),
        ),
        (
            {"namespaces": {"a/b": {"publishRate": 5}}},
            'policies.json line 1: namespaces."a/b".publishRate: got 5; allowed: an object; write { ... }',
        ),
        (
            {"namespaces": {"a/b": {"publishRate": {"west": {MSG: 1}, "east": {MSG: 2}}}}},
            (
                'policies.json line 1: namespaces."a/b".publishRate: got different rates for clusters west, east; '
                "allowed: one cluster; keep the one to be modelled"
            ),
        ),
        (
            {"namespaces": {"a/b": {"publishRate": {MSG: 1}, "publishMaxMessageRate": {"west": {MSG: 2}}}}},
            (
                'policies.json line 1: namespaces."a/b".publishMaxMessageRate: got another rate than its other name; '
                "allowed: that of publishRate; delete one of the two"
            ),
        ),
        (
            {"namespaces": {"a/b": {"dispatchRate": {"relativeToPublishRate": "true"}}}},
            (
                "policies.json line 1: namespaces.\"a/b\".dispatchRate.relativeToPublishRate: got 'true'; "
                "allowed: true or false; write it without quotes"
            ),
        ),
        (
            {"namespaces": {"a/b": {"dispatchRate": {"ratePeriodInSecond": 2**31}}}},
            (
                'policies.json line 1: namespaces."a/b".dispatchRate.ratePeriodInSecond: got 2147483648; '
                "allowed: an integer from -2147483648 to 2147483647; correct it, or remove it for the default (1)"
            ),
        ),
        (
            {"namespaces": {"a": {}}},
            "policies.json line 1: namespaces.a: got this name; allowed: tenant/namespace; correct the name",
        ),
        (
            {"topics": {"c": {}}},
            (
                "policies.json line 1: topics.c: got this name; allowed: persistent://tenant/namespace/topic, "
                "non-persistent://..., or tenant/namespace/topic; correct the name"
            ),
        ),
        (
            {"topics": {f"{TOPIC}-partition-3": {}}},
            (
                f'policies.json line 1: topics."{TOPIC}-partition-3": got a partition; '
                f"allowed: the topic, whose partitions all share its settings; write {TOPIC}"
            ),
        ),
        (
            {"topics": {TOPIC: {}, "a/b/c": {}}},
            (
                f'policies.json line 1: topics."a/b/c": got {TOPIC} again; allowed: one entry a topic; '
                "delete one of the two"
            ),
        ),
        (
            '{"topics": {\n"a/b/c": {},\n"a/b/c": {}}}',
            'policies.json line 3: topics."a/b/c": got the key twice; allowed: once (line 2); delete one of the two',
        ),
    ],
)
def test_a_mistake_names_the_path_in_the_file(value: object, expected: str) -> None:
    assert [expected] == mistakes_of(value)


def test_a_mistake_names_its_own_line() -> None:
    text = json.dumps({"topics": {TOPIC: {"publishRate": {BYTE: [1, {"{": "}"}], MSG: '\n\\"'}}}}, indent=1)
    lines = text.splitlines()
    expected = [next(n for n, line in enumerate(lines, 1) if key in line) for key in (MSG, BYTE)]
    assert expected == [int(mistake.split()[2].rstrip(":")) for mistake in mistakes_of(text)]


def test_keys_that_begin_with_two_slashes_are_comments_at_every_level_and_may_repeat() -> None:
    text = """{"//": 1, "// b": 2, "//": 3, "topics": {"// why": "x", "a/b/c": {"//": [], "publishRate": {
        "// publishThrottlingRateInMsg": "why", "publishThrottlingRateInMsg": 5, "publishThrottlingRateInBit": 5}}}}"""
    policies, findings = read(text)
    assert policies.topics == {TOPIC: RatePolicies(publish=PublishRate(5, 0))}
    (mistake,) = findings.mistakes
    assert mistake.startswith("policies.json line 2: topics.")


@given(st.integers(INT64_MIN, INT64_MAX), st.integers(INT64_MIN, INT64_MAX))
def test_every_rate_of_64_bits_is_read_exactly_and_below_0_is_off(messages: int, size: int) -> None:
    expected = RatePolicies(publish=PublishRate(max(0, messages), max(0, size)))
    assert expected == namespace({"publishRate": {MSG: messages, BYTE: size}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES.split(", "), MSG, "ratePeriodInSecond", "west"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(40))
@given(JSON)
def test_no_value_makes_reading_fail(value: object) -> None:
    read({"namespaces": {"a/b": value}, "topics": {"a/b/c": value}})
    read({"namespaces": value})
