"""A running Pulsar cluster as its brokers tell: who they are, and what they have counted (clusters 1)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from headgate.cluster.brokers import BrokerLook, CacheUse
from headgate.cluster.http import Http
from headgate.conf.cluster import ClusterConf
from headgate.conf.findings import shown
from headgate.core.clusters.counters import Counted, Counters, Increase, Reading
from headgate.errors import ClusterError

_MESSAGES, _BYTES, _THROTTLED = range(3)
_COUNTERS: Final = {
    "pulsar_in_messages_total": ("in", _MESSAGES),
    "pulsar_in_bytes_total": ("in", _BYTES),
    "pulsar_publish_rate_limit_times": ("in", _THROTTLED),
    "pulsar_out_messages_total": ("out", _MESSAGES),
    "pulsar_out_bytes_total": ("out", _BYTES),
    "pulsar_subscription_dispatch_throttled_msg_events": ("out", _THROTTLED),
    "pulsar_subscription_dispatch_throttled_bytes_events": ("out", _THROTTLED),
}
_HITS, _MISSES, _USED = _CACHE = (
    "pulsar_ml_cache_hits_rate",
    "pulsar_ml_cache_misses_rate",
    "pulsar_ml_cache_used_size",
)
_VERSION: Final = "pulsar_version_info"
_NAMES: Final = "|".join((*_COUNTERS, *_CACHE, _VERSION))
_IS_WANTED: Final = re.compile(rf"[ \t]*(?:{_NAMES})(?![\w:])".encode()).match
_CONTENT_TYPE: Final = "text/plain"
_OF_CONSUMER: Final = "consumer_id"
"""With exposeConsumerLevelMetricsInPrometheus each consumer is counted beside its subscription."""

_VALUE: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_LABEL: Final = re.compile(rf'(\w+)[ \t]*=[ \t]*"({_VALUE})"', re.ASCII)
_ESCAPED: Final = re.compile(r'\\([\\"n])')
_LINE: Final = re.compile(
    rf"[ \t]*({_NAMES})(?![\w:])[ \t]*"
    rf'(?:\{{((?:[ \t]*\w+[ \t]*=[ \t]*"{_VALUE}"[ \t]*(?:,|(?=\}})))*[ \t]*)\}})?[ \t]*'
    r"([-+.0-9A-Za-z]+)(?:[ \t]+-?[0-9]+)?[ \t]*",
    re.ASCII,
)
# Pulsar 4.0.8 escapes quotes alone: a backslash at the end of a name looks as if it escaped the quote behind it.
_OPEN_VALUE: Final = r'(?:[^"]|(?<=\\)")*'
_PULSARS_LINE: Final = re.compile(
    rf'({_NAMES})\{{cluster="[^"]*",namespace="[^"]*",topic="({_OPEN_VALUE})"((?:,\w+="{_OPEN_VALUE}")*)\}} ([0-9.E]+)',
    re.ASCII,
)


class PulsarBrokers:
    """A Pulsar cluster. Its brokers are asked at http://HOST:PORT/metrics/, or https where admin_url has it.

    Raises ClusterError where a broker does not answer, or refuses.
    """

    def __init__(self, conf: ClusterConf) -> None:
        self._http = Http(conf)
        self._admin = conf.admin
        self._scheme = self._admin.partition("://")[0]

    def name(self) -> str:
        """The cluster that the broker at admin_url is part of."""
        url = f"{self._admin}/brokers/configuration/runtime"
        found = self._http.get(url)
        if not isinstance(found, dict) or "clusterName" not in found:
            raise ClusterError(f"{url}: got {shown(found)}; allowed: an object with clusterName; correct admin_url")
        return str(found["clusterName"])

    def brokers(self) -> Sequence[str]:
        """HOST:PORT of their web services."""
        found = self._http.get(f"{self._admin}/brokers")
        if not isinstance(found, list):
            raise ClusterError(
                f"{self._admin}/brokers: got {shown(found)}; allowed: a list of brokers; correct admin_url"
            )
        return sorted(map(str, found))

    def look(self, broker: str) -> BrokerLook[Reading]:
        """All its topics, in one answer, of which only the lines that count are kept."""
        url = f"{self._scheme}://{broker}/metrics/"
        with self._http.stream(url) as answer:
            if (got := answer.content_type) != _CONTENT_TYPE:
                raise ClusterError(f"{url}: got {got}; allowed: {_CONTENT_TYPE}, as metrics are; correct admin_url")
            wanted = b"\n".join(line for line in _lines(answer.pieces) if _IS_WANTED(line))
        try:
            return look_of(wanted.decode())
        except (ValueError, OverflowError) as error:
            raise ClusterError(f"{url}: got {error}; allowed: the text format of Prometheus") from error

    def counting(self, told: Iterable[Increase], looked: Mapping[str, int]) -> Counters:
        """By broker: a topic that moves begins anew."""
        return Counters(told, looked)


def look_of(text: str) -> BrokerLook[Reading]:
    """What the lines of a broker's metrics tell. Lines of other metrics are ignored.

    Raises ValueError or OverflowError for a line of these that is not in the text format of Prometheus.
    """
    counted: dict[Counted, list[int | None]] = {}
    cache: dict[str, float] = {}
    version: str | None = None
    is_without_topics = False
    for line in text.split("\n"):
        if not _IS_WANTED(line.encode()):
            continue
        name, labels, number = _sample(line)
        if name in _CACHE:
            cache[name] = float(number)
        elif name == _VERSION:
            version = labels.get("version")
        elif not (topic := labels.get("topic")):
            is_without_topics = True
        elif _OF_CONSUMER not in labels:
            direction, place = _COUNTERS[name]
            amounts = counted.setdefault((topic, direction), [0, 0, None])
            amounts[place] = (amounts[place] or 0) + (int(number) if number.isdigit() else int(float(number)))
    if is_without_topics and not counted:
        raise ValueError("counters without topics: set exposeTopicLevelMetricsInPrometheus=true in broker.conf")
    readings = {
        key: Reading(messages or 0, of_bytes or 0, times) for key, (messages, of_bytes, times) in counted.items()
    }
    use = CacheUse(cache[_HITS], cache[_MISSES], int(cache[_USED])) if len(cache) == len(_CACHE) else None
    return BrokerLook(readings, use, version)


def _sample(line: str) -> tuple[str, Mapping[str, str], str]:
    """Name, labels and number."""
    if found := _LINE.fullmatch(line):
        name, text, number = found.groups()
        labels = dict(_LABEL.findall(text or ""))
        if "\\" in line:
            labels = {label: _ESCAPED.sub(_unescaped, value) for label, value in labels.items()}
        return name, labels, number
    if found := _PULSARS_LINE.fullmatch(line):
        name, topic, others, number = found.groups()
        return name, dict(_LABEL.findall(others), topic=topic.replace('\\"', '"')), number
    raise ValueError(shown(line))


def _unescaped(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Of pieces: http.client is slow at single lines of an answer that comes in chunks."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest
