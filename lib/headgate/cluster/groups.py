"""Resources that are the resource groups of --output, as `headgate groups` changes them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headgate.cluster.running import ENFORCER_PATIENCE
from headgate.conf.cluster import RATES, Rate, Resource
from headgate.core.clusters.demand import SECOND_US
from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.core.topic_names import Topic, topic_of
from headgate.errors import TableError
from headgate.quota.tables.delta import opened
from headgate.quota.tables.opened import Locations, opened_config
from headgate.quota.tables.schemas import RG_ATTACHMENTS, RG_GROUPS
from headgate.stores import is_there

_READ_EVERY_US = 5 * SECOND_US


class Charged:
    """Which group each topic is charged to. A topic is resolved once. Source: resource-groups 3."""

    def __init__(self, tables: ConfigTables) -> None:
        self.tables = tables
        self._found: dict[str, str | None] = {}
        self.alone: dict[str, set[str]] = defaultdict(set)
        """Topics that are attached by themselves, by group; of those that were asked for."""

    def group(self, name: str) -> str | None:
        """Of a topic or partition; None: of none."""
        if name not in self._found:
            topic = topic_of(name)
            found = None if topic is None else self.tables.resolve(topic)
            self._found[name] = group = None if found is None else found.group
            if topic and found and group and found.scope is AttachedTo.TOPIC:
                self.alone[group].add(topic.name)
        return self._found[name]


@dataclass(frozen=True, slots=True)
class Group(Resource):
    """The topics that are charged to a group. A rate of 0 becomes 1 for each topic: to a broker 0 means no limit."""

    charged: Charged

    def has(self, topic: str) -> bool:
        """Whether a topic is charged to it."""
        return self.charged.group(topic) == self.name

    def tenants(self) -> Iterable[str]:
        """Those that it is attached to, and those of namespaces."""
        attached = self.charged.tables.attachments
        names = [*attached.tenants.items(), *attached.namespaces.items()]
        return sorted({name.partition("/")[0] for name, group in names if group == self.name})

    def has_namespace(self, namespace: str) -> bool:
        """A namespace that is attached to another group is left out of its tenant's."""
        return self.charged.tables.resolve(Topic("", namespace.partition("/")[0], namespace)).group == self.name

    def topics(self) -> Iterable[str]:
        """Only those with counters: others may not be there."""
        return self.charged.alone.get(self.name, ())


class Groups:
    """The groups of an output that are attached and have a rate. Their tables are created where there are none.

    Raises TableError.
    """

    def __init__(self, output: str, now_us: int) -> None:
        settings = QuotaSettings()
        places = Locations.of(output, settings)
        for place, spec in ((places.groups, RG_GROUPS), (places.attachments, RG_ATTACHMENTS)):
            if not is_there(place, ENFORCER_PATIENCE):
                opened(place, spec, settings.epoch_ms, ENFORCER_PATIENCE)
        self._store = opened_config(output, settings, patience=ENFORCER_PATIENCE)
        self._tables, self._read_us = self._store.read(), now_us
        self._told: str | None = None

    def resources(self) -> Sequence[Resource]:
        """As they were read last."""
        charged, groups = Charged(self._tables), self._tables.attached_groups().values()
        return [Group("group", one.name, quotas, charged) for one in groups if (quotas := _quotas(one))]

    def changed(self, now_us: int, tell: Callable[[str], None]) -> Sequence[Resource] | None:
        """The resources, if they are others now; None if not, or if it is not yet time to look.

        What cannot be read is told, and all stays as it is.
        """
        if now_us - self._read_us < _READ_EVERY_US:
            return None
        before, self._read_us = self._tables, now_us
        try:
            self._tables, told = self._store.read(), None
        except TableError as error:
            told = f"groups stay as they are: {error}"
        if told is not None and told != self._told:
            tell(told)
        self._told = told
        return self.resources() if self._tables is not before else None


def _quotas(group: ResourceGroup) -> dict[Rate, int]:
    return {rate: quota for rate, quota in zip(RATES.values(), group.rates, strict=True) if quota is not None}
