"""Groups that the same brokers use share a shard of rg_usage, so that a reader finds little else there.

A broker reads the shards of the groups it holds, whole. Where groups lie by a hash of their names each broker reads
nearly everything, and a cut of few rows becomes a file in each shard (resource-groups 13.3).
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headgate.core.numbers import at_least
from headgate.errors import InvalidArgument

GAIN_PERCENT = 10
"""What readers have to be spared before groups move: a group that moves costs its readers a whole read."""

Holders = Mapping[int, AbstractSet[int]]
"""The brokers that use a group, its active set, by group id."""


def rows_read(holders: Holders, shards: Mapping[int, int]) -> int:
    """How many rows all brokers together read in a round in which every holder of every group wrote one.

    shards: of every group in `holders`. Source: resource-groups 13.
    """
    read: dict[int, _Shard] = {}
    for group, brokers in holders.items():
        read.setdefault(shards[group], _Shard()).add(_mask(brokers), len(brokers))
    return sum(shard.cost for shard in read.values())


def moves(holders: Holders, current: Mapping[int, int], shards: int) -> dict[int, int]:
    """The groups to move and where to, by id; empty unless the brokers read GAIN_PERCENT less for it.

    Groups with the same holders share a shard. Where there are more such sets than shards, a set joins the shard to
    whose readers it adds least. As many groups as can be stay where they are. Depends on nothing but its arguments.

    Arguments:
        holders: of the groups in use; the others stay where they are.
        current: the shard of every group in `holders`.
        shards: how many there are, from 0 to one less; >= 1.

    Raises InvalidArgument for fewer, a group without a shard and negative brokers. Source: resource-groups 13.3.

    """
    at_least(1, shards, "shards")
    used = {group: brokers for group, brokers in sorted(holders.items()) if brokers}
    for group, brokers in used.items():
        if group not in current:
            raise InvalidArgument(f"current: got no shard of group {group}, allowed is one for each group with holders")
        at_least(0, min(brokers), "broker")
    placed = _numbered(_gathered(used, shards), current, shards)
    if rows_read(used, placed) * 100 > rows_read(used, current) * (100 - GAIN_PERCENT):
        return {}
    return {group: shard for group, shard in placed.items() if shard != current[group]}


@dataclass(slots=True)
class _Shard:
    """readers: who holds a group of it, a bit each. rows: written in a round. groups: what lies there."""

    readers: int = 0
    rows: int = 0
    groups: list[int] = field(default_factory=list)

    @property
    def cost(self) -> int:
        """Rows read in a round: every reader reads all of them."""
        return self.rows * self.readers.bit_count()

    def cost_with(self, readers: int, rows: int) -> int:
        """What a set would add to the cost."""
        return (self.rows + rows) * (self.readers | readers).bit_count() - self.cost

    def add(self, readers: int, rows: int, groups: Iterable[int] = ()) -> None:
        """Put groups of the same holders here."""
        self.readers |= readers
        self.rows += rows
        self.groups += groups


def _gathered(holders: Holders, shards: int) -> list[_Shard]:
    """Groups with the same holders together, the largest sets first, in at most `shards` shards."""
    by_readers: dict[int, list[int]] = {}
    for group, brokers in holders.items():
        by_readers.setdefault(_mask(brokers), []).append(group)
    gathered: list[_Shard] = []
    sets = sorted(by_readers.items(), key=lambda found: (-len(found[1]) * found[0].bit_count(), found[0]))
    for readers, groups in sets:
        rows = len(groups) * readers.bit_count()
        if len(gathered) < shards:
            gathered.append(_Shard())
            chosen = gathered[-1]
        else:
            chosen = min(gathered, key=lambda shard: shard.cost_with(readers, rows))
        chosen.add(readers, rows, groups)
    return gathered


def _numbered(gathered: list[_Shard], current: Mapping[int, int], shards: int) -> dict[int, int]:
    """The shard of each group, numbered so that most groups stay; ties go to the smallest numbers."""
    staying: dict[tuple[int, int], int] = {}
    for row, shard in enumerate(gathered):
        for group in shard.groups:
            if 0 <= current[group] < shards:
                key = row, current[group]
                staying[key] = staying.get(key, 0) + 1
    numbers: dict[int, int] = {}
    free = set(range(shards))
    for row, number in sorted(staying, key=lambda key: (-staying[key], key)):
        if row not in numbers and number in free:
            numbers[row] = number
            free.remove(number)
    unused = iter(sorted(free))
    for row in range(len(gathered)):
        if row not in numbers:
            numbers[row] = next(unused)
    return {group: numbers[row] for row, shard in enumerate(gathered) for group in shard.groups}


def _mask(brokers: AbstractSet[int]) -> int:
    """Brokers as bits of one number: unions and their sizes take no time."""
    mask = 0
    for broker in brokers:
        mask |= 1 << broker
    return mask
