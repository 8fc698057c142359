"""What the full names of many topics say: tenants, namespaces, the topics that partitions belong to.

The functions are given full names; what they make of anything else is no name of a tenant or namespace.
`core/topic_names.py` has the same for one name.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TOPIC, TENANT, NAMESPACE = "topic", "tenant", "namespace"
PARTITION = r"(-partition-\d+)?$"
_IN_NAMESPACE = r"(?s)^(?:non-)?persistent://([^/]+/[^/]+)/.+$"
_PARTS = rf"^(?:non-)?persistent://(?P<{NAMESPACE}>(?P<{TENANT}>[^/]+)/[^/]+)/"


def namespaces_of(topics: Any) -> Any:
    return pc.replace_substring_regex(topics, _IN_NAMESPACE, r"\1")


def tenants_of(topics: Any) -> Any:
    return pc.replace_substring_regex(namespaces_of(topics), r"(?s)/.*$", "")


def without_partitions(topics: Any) -> Any:
    return pc.replace_substring_regex(topics, PARTITION, "")


def named_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a table whose rows have such columns: where there is a topic, tenant and namespace follow."""
    if TOPIC not in schema.names:
        return schema
    return schema.append(pa.field(TENANT, pa.string())).append(pa.field(NAMESPACE, pa.string()))


def named_rows(rows: pa.Table) -> pa.Table:
    """The rows with the columns of `named_schema`: null where the topic is null, or no full name."""
    if TOPIC not in rows.column_names:
        return rows
    topics = rows[TOPIC].combine_chunks().dictionary_encode()
    parts = pc.extract_regex(topics.dictionary, _PARTS)
    for name in (TENANT, NAMESPACE):
        rows = rows.append_column(name, pc.struct_field(parts, name).take(topics.indices))
    return rows
