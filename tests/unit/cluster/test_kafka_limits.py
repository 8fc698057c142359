"""What is set for a user of Kafka, whatever the operator has set."""

from pathlib import Path

import pytest

from headgate.cluster.kafka_limits import Entity, KafkaLimits, is_in_the_way, path_of
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
    assert path == path_of(Client(scope, name, {}, "acme."))
    assert limits.own_path("acme.t-partition-0", "in") is None


DEFAULT_NAME, ACME, OTHER = (None,), ("acme",), ("other",)


@pytest.mark.parametrize(
    ("entity", "of_user", "of_client_id"),
    [
        (Entity(ACME, OTHER), True, False),
        (Entity(ACME, DEFAULT_NAME), True, True),
        (Entity(OTHER, ACME), False, True),
        (Entity(DEFAULT_NAME, OTHER), True, False),
        (Entity(OTHER, DEFAULT_NAME), False, True),
    ],
)
def test_a_quota_that_a_connection_of_the_client_may_have_is_in_the_way(entity, of_user, of_client_id):
    assert [of_user, of_client_id] == [
        is_in_the_way(entity, Client(scope, "acme", {}, "acme.")) for scope in ("user", "client id")
    ]


@pytest.mark.parametrize("name", [ACME, OTHER, DEFAULT_NAME])
def test_a_quota_of_client_ids_alone_is_in_every_users_way_and_one_of_users_in_every_client_ids(name):
    assert is_in_the_way(Entity(client_id=name), Client("user", "acme", {}, "acme."))
    assert is_in_the_way(Entity(user=name), Client("client id", "acme", {}, "acme."))


def test_whose_quota_it_is_is_said_in_words():
    assert "user acme, client id <default>" == str(Entity(ACME, DEFAULT_NAME))


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
