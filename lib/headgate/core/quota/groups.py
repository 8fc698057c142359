"""The resource group: a name, an id and four rates for the whole cluster (resource-groups 1, 2).

None is "not limited" and 0 is "block everything". REST writes None as -1; `rate_of_rest` and `rest_of_rate` are the
only two places where one form becomes the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from headgate.core.quota.rates import capped, capped_or_none

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NOT_LIMITED = -1
HEARTBEAT_GROUP = 0
"""The group id that no group has: rows with it speak of the whole broker."""
NAME_LENGTH = 250

_NAME_CHARACTERS = frozenset("-=:._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


class TrafficClass(IntEnum):
    """The direction of traffic, by its number in the tables."""

    PUBLISH = 0
    DISPATCH = 1


class Dimension(IntEnum):
    """What is counted; also the position in every pair (messages, bytes)."""

    MESSAGES = 0
    BYTES = 1


IntPair = tuple[int, int]
RatePair = tuple[int | None, int | None]
FlagPair = tuple[bool, bool]
UsageKey = tuple[int, int]
"""(group_id, traffic class): what a usage row is about; its two cells are the two dimensions."""
UNLIMITED: RatePair = (None, None)


@dataclass(frozen=True, slots=True)
class RateField:
    """A field of a group in REST, and the largest value of its type."""

    name: str
    largest: int


RATE_FIELDS = (
    RateField("publishRateInMsgs", INT32_MAX),
    RateField("publishRateInBytes", INT64_MAX),
    RateField("dispatchRateInMsgs", INT32_MAX),
    RateField("dispatchRateInBytes", INT64_MAX),
)
"""In the order in which REST returns them: class by class, messages before bytes."""
REPLICATION_FIELDS = (
    RateField("replicationDispatchRateInMsgs", INT64_MAX),
    RateField("replicationDispatchRateInBytes", INT64_MAX),
)
"""Stored for clients that know them, never enforced."""

Rates = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """A row of rg_groups. The name never changes, and neither name nor id says anything about another group.

    group_id: >= 1, never reused.
    rates: a second, as sent, in the order of RATE_FIELDS; None is not limited.
    replication: messages and bytes a second, as sent; never enforced.
    shard: where its usage rows are.
    deleted: the group is gone; the row stays so that its id is not given again.
    version: of the admin write that made this row.
    Source: resource-groups 2, 5.1.
    """

    group_id: int
    name: str
    rates: Rates = (None, None, None, None)
    replication: RatePair = UNLIMITED
    shard: int = 0
    deleted: bool = False
    version: int = 0

    def quota(self, traffic_class: int, dimension: int) -> int | None:
        """Q of a cell, a second, at most RATE_MAX; None is not limited. resource-groups 1"""
        return capped_or_none(self.rates[2 * traffic_class + dimension])

    def quotas(self, traffic_class: int) -> RatePair:
        """Q of both cells of a class."""
        return self.quota(traffic_class, Dimension.MESSAGES), self.quota(traffic_class, Dimension.BYTES)


def is_group_name(name: object) -> bool:
    """Whether `name` is 1 to 250 of A-Z a-z 0-9 _ - = : . resource-groups 4"""
    return isinstance(name, str) and 1 <= len(name) <= NAME_LENGTH and _NAME_CHARACTERS.issuperset(name)


def rate_of_rest(value: int | None) -> int | None:
    """The rate that REST writes as `value`: -1 and null are not limited. resource-groups 1"""
    return None if value == NOT_LIMITED else value


def rest_of_rate(rate: int | None) -> int:
    """`rate` as REST writes it: -1 where it is not limited. resource-groups 1"""
    return NOT_LIMITED if rate is None else rate


def stricter(rates: RatePair, others: RatePair) -> RatePair:
    """The smaller of both limits, in messages and in bytes; None is no bound. Source: resource-groups 2."""
    return _smaller(rates[0], others[0]), _smaller(rates[1], others[1])


def initial_shard(name: str, shards: int) -> int:
    """A new group's shard, 0 to shards - 1, by a hash of its name that is the same everywhere. resource-groups 13.3"""
    value = _FNV_OFFSET
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return (value ^ value >> 32) % shards  # the low bits alone tell names that differ at their end badly apart


def clamped(rates: Sequence[int | None]) -> RatePair:
    """A pair of rates, each at most RATE_MAX. resource-groups 1"""
    messages, of_bytes = rates
    return capped_or_none(messages), capped_or_none(of_bytes)


def _smaller(rate: int | None, other: int | None) -> int | None:
    bounds = [capped(bound) for bound in (rate, other) if bound is not None]
    return min(bounds, default=None)
