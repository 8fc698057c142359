"""Which tenants and namespaces there are: those of the conf file, and those in the input (resource-groups 4)."""

from collections.abc import Container
from pathlib import PurePath

from deltalake import DeltaTable

from headgate.core.quota.admin.api import Presence
from headgate.core.quota.attachments import Attachments
from headgate.core.topic_names import SCHEMES, is_path_name, topic_of
from headgate.quota.tables.topic_tables import topic_tables
from headgate.store_errors import unreadable
from headgate.stores import Patience
from headgate.tables.query import query

_COUNTERS = "counters"
"""Of `headgate collect`, in an output that may have no job."""


class _Everything(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


EVERYWHERE = Presence(_Everything(), _Everything())
"""For what speaks for the configuration itself: naming a tenant there declares it."""


class _Seen(Container[str]):
    """Prefixes of topics in topic_usage and counters. A name is looked up only when it is asked for."""

    def __init__(self, output: str | PurePath, declared: Container[str], parts: int, patience: Patience | None) -> None:
        self._output = output
        self._patience = patience
        self._declared = declared
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        if name in self._declared:
            return True
        parts = name.split("/") if isinstance(name, str) else []
        return len(parts) == self._parts and all(map(is_path_name, parts)) and self._was_seen(str(name))

    def _was_seen(self, name: str) -> bool:
        where = " OR ".join(f"starts_with(topic, '{scheme}://{name}/')" for scheme in SCHEMES)
        sql = f"SELECT topic FROM t WHERE {where} LIMIT 1"  # noqa: S608  a name of plain characters
        usage = topic_tables(self._output, patience=self._patience)
        tables = [*usage, *topic_tables(self._output, _COUNTERS, self._patience)]
        return any(_has_rows(table, sql, self._patience) for table in tables)


def _has_rows(location: str, sql: str, patience: Patience | None) -> bool:
    try:
        return len(query(sql, {"t": DeltaTable(location, storage_options=patience and patience.of_delta)})) > 0
    except Exception as error:  # query raises no other
        raise unreadable(location, error) from error


def presence_of(output: str | PurePath, attachments: Attachments, patience: Patience | None = None) -> Presence:
    """Tenants and namespaces of whose topics an output has usage, and those that something is attached to.

    patience: for an output on a store.
    """
    topics = [topic for topic in map(topic_of, attachments.topics) if topic is not None]
    namespaces = {*attachments.namespaces, *(topic.namespace for topic in topics)}
    tenants = {*attachments.tenants, *(name.partition("/")[0] for name in namespaces)}
    return Presence(_Seen(output, tenants, 1, patience), _Seen(output, namespaces, 2, patience))
