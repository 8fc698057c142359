"""What the quota loop tells the job: limits of brokers in groups, and what groups are attached to, as they change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.core.quota.attachments import FIELDS, AttachedTo
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import UNLIMITED, RatePair


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """The limit of a group and class (0 publish, 1 dispatch) on one broker from `effective_ms` of event time on.

    Rates a second; None is not limited, 0 blocks.
    """

    broker: str
    group: str
    traffic_class: int
    messages_per_s: int | None
    bytes_per_s: int | None
    effective_ms: int


@dataclass(frozen=True, slots=True)
class GroupAttachment:
    """From `effective_ms` of event time on this group is attached to the resource; None: none that exists.

    scope: tenant, namespace or topic. resource: as in rg_attachments.
    """

    scope: AttachedTo
    resource: str
    group: str | None
    effective_ms: int


@dataclass(frozen=True, slots=True)
class ControlRows:
    """What changed since the rows before. Each says what holds, so one that is applied twice does no harm.

    transaction: an application id and a version that no other rows have. A batch that is run again after a restart
    gives other rows than before; they must not be taken for the ones of its first run.
    """

    limits: tuple[GroupLimit, ...]
    attachments: tuple[GroupAttachment, ...]
    transaction: tuple[str, int]


Attached = dict[tuple[AttachedTo, str], str]
LimitKey = tuple[str, str, int]
"""Names of broker and group, and the class."""


def effective_attachments(tables: ConfigTables) -> Attached:
    """The group of every resource that has one which exists. Source: resource-groups 3.2."""
    return {
        (scope, resource): name
        for scope in FIELDS
        for resource, name in tables.attachments.by_scope(scope).items()
        if name in tables.groups
    }


class AppliedLimits:
    """Attachments and limits that the rows so far leave in force. `attached` and `limits` are the state."""

    def __init__(self) -> None:
        self.attached: Attached = {}
        self.limits: dict[LimitKey, RatePair] = {}

    def attach(self, wanted: Mapping[tuple[AttachedTo, str], str], effective_ms: int) -> tuple[GroupAttachment, ...]:
        """The rows that turn what is attached into `wanted`, sorted."""
        places = sorted({*self.attached, *wanted})
        changed = [place for place in places if self.attached.get(place) != wanted.get(place)]
        self.attached = dict(wanted)
        return tuple(GroupAttachment(*place, wanted.get(place), effective_ms) for place in changed)

    def limit(self, wanted: Mapping[LimitKey, RatePair], effective_ms: int) -> tuple[GroupLimit, ...]:
        """The rows that bring the limits named to these values, sorted."""
        return tuple(self._limit(wanted, effective_ms))

    def groups(self) -> set[str]:
        """The groups that have limits anywhere."""
        return {group for _, group, _ in self.limits}

    def _limit(self, wanted: Mapping[LimitKey, RatePair], effective_ms: int) -> Iterator[GroupLimit]:
        for key, rates in sorted(wanted.items(), key=lambda one: one[0]):
            if self.limits.get(key, UNLIMITED) == rates:
                continue
            if rates == UNLIMITED:
                del self.limits[key]
            else:
                self.limits[key] = rates
            yield GroupLimit(*key, *rates, effective_ms)
