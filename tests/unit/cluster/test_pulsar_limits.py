"""Rates as brokers answer with them. What is set on a real broker is in integration/test_cluster.py."""

import json
from pathlib import Path

import pytest

from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.conf.cluster import ClusterConf, ClusterSettings
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError
from unit.cluster.test_http import JETTYS_404, Answer, serving

PATH = "namespaces/acme/a/publishRate"
CONF = "brokers/configuration/runtime"


def limits(url):
    return PulsarLimits(ClusterConf(ClusterSettings(admin_url=url), [], Path()))


def answering(path, status, body):
    return serving({f"/admin/v2/{path}": Answer(status, body)})


@pytest.mark.parametrize(
    "body", [b'"much"', b"[1]", b'{"publishThrottlingRateInMsg": "9"}', b'{"ratePeriodInSecond": null}']
)
def test_rates_of_another_shape_are_named(body):
    with answering(PATH, 200, body) as broker, pytest.raises(ClusterError, match=f"{PATH}: got .*; allowed: rates"):
        limits(broker.url).read(PATH)


@pytest.mark.parametrize("body", [b"[]", b"null", json.dumps({"maxPublishRatePerTopicInMessages": "x"}).encode()])
def test_a_configuration_of_another_shape_is_named(body):
    with (
        answering(CONF, 200, body) as broker,
        pytest.raises(ClusterError, match=f"{CONF}: got .*allowed: the settings"),
    ):
        limits(broker.url).lowered(PATH, None, None, Limit(7))


def test_a_namespace_is_gone_where_a_broker_says_so_and_not_where_a_proxy_does():
    """Else an operator's limit would be forgotten, or one of headgate's."""
    with answering(PATH, 404, b'{"reason": "Namespace does not exist"}') as broker:
        assert limits(broker.url).read(PATH) is None
        limits(broker.url).write(PATH, None)
    with answering(PATH, 404, JETTYS_404) as proxy:
        for act in (limits(proxy.url).read, lambda path: limits(proxy.url).write(path, None)):
            with pytest.raises(ClusterError, match="404 Not Found; no Pulsar broker says so"):
                act(PATH)
