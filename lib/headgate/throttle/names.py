"""What the full name of a topic says: its tenant, its namespace, the topic that a partition belongs to.

The functions over arrays are given full names; what they make of anything else is no name of a tenant or namespace.
"""

import re
from typing import Any

import pyarrow.compute as pc

PARTITION = r"(-partition-\d+)?$"
_PARTITION = re.compile(r"-partition-[0-9]+\Z")
_IN_NAMESPACE = r"(?s)^(?:non-)?persistent://([^/]+/[^/]+)/.+$"
_NAMESPACE = re.compile(_IN_NAMESPACE)


def namespace_of(topic: str) -> str:
    match = _NAMESPACE.match(topic)
    return match.group(1) if match else ""


def tenant_of(topic: str) -> str:
    return namespace_of(topic).partition("/")[0]


def without_partition(topic: str) -> str:
    """The topic that a partition belongs to: its policies hold for each partition."""
    return _PARTITION.sub("", topic)


def namespaces_of(topics: Any) -> Any:
    return pc.replace_substring_regex(topics, _IN_NAMESPACE, r"\1")


def tenants_of(topics: Any) -> Any:
    return pc.replace_substring_regex(namespaces_of(topics), r"(?s)/.*$", "")


def without_partitions(topics: Any) -> Any:
    return pc.replace_substring_regex(topics, PARTITION, "")
