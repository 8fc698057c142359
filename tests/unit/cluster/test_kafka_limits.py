"""What is set for a user of Kafka, whatever the operator has set."""

from pathlib import Path

import pytest

from headgate.cluster.kafka_limits import KafkaLimits
from headgate.conf.cluster import Client, ClusterConf, ClusterSettings
from headgate.core.clusters.pushes import Limit

USER, DEFAULT = "users/acme/producer_byte_rate", "users/<default>/producer_byte_rate"
CAP = Limit(bytes=100)


@pytest.fixture
def limits():
    return KafkaLimits(ClusterConf(ClusterSettings(kind="kafka", bootstrap_servers="127.0.0.1:1"), [], Path()))


@pytest.mark.parametrize(
    ("scope", "name", "path"),
    [
        ("user", "acme", USER),
        ("client id", "acme", "clients/acme/producer_byte_rate"),
        ("user", "a/b <default>", "users/a%2Fb%20%3Cdefault%3E/producer_byte_rate"),
    ],
)
def test_a_client_has_one_limit_which_holds_on_each_broker(limits, scope, name, path):
    assert [path] == limits.paths(Client(scope, name, {}, "acme."), "in")
    assert limits.own_path("acme.t-partition-0", "in") is None


@pytest.mark.parametrize(
    ("value", "wider", "expected"),
    [
        (None, None, "100"),
        (None, "200", "100"),
        (None, "100", None),
        (None, "50.5", None),  # the default of all users is lower
        ("200", None, "100"),
        ("50", None, "50"),
        ("200", "50", "100"),  # its own precedes the default, also where it is higher
        ("50", "200", "50"),
    ],
)
def test_no_limit_is_higher_than_the_operators(limits, value, wider, expected):
    assert expected == limits.lowered(USER, value, wider, CAP)


def test_a_default_is_wider_than_a_name_and_nothing_is_wider_than_a_default(limits):
    assert DEFAULT == limits.wider_path(USER)
    assert limits.wider_path(DEFAULT) is None


@pytest.mark.parametrize(("value", "expected"), [("100", 100), ("99.5", 100), ("0.0", 1)])
def test_a_limit_is_rounded_up(limits, value, expected):
    assert Limit(bytes=expected) == limits.limit(USER, value)
