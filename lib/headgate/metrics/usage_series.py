"""Counters of topic_usage: of each broker, and of each tenant over all brokers of the job."""

from headgate.arrow.topic_names import TENANT
from headgate.metrics.series import COUNTER, Count, Series, counter

NS_PER_S = 1_000_000_000

_BY_SCOPE = Series(
    "headgate_limiter_throttled_publishes_total",
    COUNTER,
    "Publishes that the limiters of this scope throttled; one that several throttle counts for each of them.",
    ("broker", "scope"),
)
_USAGE = {
    "publishes": ("publishes", "Publishes that came."),
    "publish_messages": ("messages", "Messages in the publishes that came."),
    "publish_bytes": ("bytes", "Bytes in the publishes that came."),
    "throttled_publishes": ("throttled_publishes", "Publishes that at least one limiter throttled."),
    "admitted_publishes": ("admitted_publishes", "Publishes that were let in; offered traffic only."),
    "admitted_messages": ("admitted_messages", "Messages in the publishes that were let in; offered traffic only."),
    "admitted_bytes": ("admitted_bytes", "Bytes in the publishes that were let in; offered traffic only."),
    "delayed_publishes": ("delayed_publishes", "Publishes that were let in after a wait; offered traffic only."),
    "failed_publishes": ("failed_publishes", "Publishes given up after the client's time-out; offered traffic only."),
    "failed_messages": ("failed_messages", "Messages in the publishes given up; offered traffic only."),
    "failed_bytes": ("failed_bytes", "Bytes in the publishes given up; offered traffic only."),
}
_USAGE_NS = {
    "throttled_seconds": ("throttled_ns", "Time with a producer of a topic waiting, added up over topics."),
    "publish_delay_seconds": ("delay_ns", "Waits of the publishes that were let in; offered traffic only."),
}
OF_TENANT = (
    *("publishes", "publish_messages", "publish_bytes"),
    *("admitted_messages", "admitted_bytes"),
    *("throttled_publishes", "throttled_seconds", "failed_publishes"),
)
"""What each tenant used, was held and lost. The counters of brokers have the rest."""


def _count(name: str, label: str, prefix: str = "") -> Count:
    column, meaning = (_USAGE | _USAGE_NS)[name]
    return counter(
        f"headgate_{prefix}{name}_total", meaning, label, column=column, per=NS_PER_S if name in _USAGE_NS else 1
    )


OF_USAGE = (
    *(_count(name, "broker") for name in (*_USAGE, *_USAGE_NS)),
    *(Count(_BY_SCOPE, ("broker",), f"throttled_by_{scope}", (scope,)) for scope in ("topic", "broker", "group")),
    *(_count(name, TENANT, "tenant_") for name in OF_TENANT),
)
"""Each counter of a tenant has the name of that of brokers after `tenant_`: their sums are equal."""
