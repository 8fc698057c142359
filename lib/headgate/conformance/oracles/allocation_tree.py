"""One quota down a tree: cluster, brokers, shards of topics, topics, by the same function (resource-groups 8.6)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.core.quota.allocation.allocation import Demands, Division, Limits, divide, named
from headgate.core.quota.allocation.allocation_input import check_ids, check_quota, check_values, check_weights

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A leaf with its demand, or a node whose demand is the sum of its children's, unbounded if any is.

    id_: distinct among siblings. weight: 1 to 1000; a shard's is its number of active topics, a topic's 1.
    demand: of a leaf, a second; None is unbounded. children: None for a leaf.
    """

    id_: int
    weight: int = 1
    demand: int | None = 0
    children: tuple["Node", ...] | None = None


def allocate_tree(
    limit: int | None, children: Sequence[Node], division: str = Division.MAX_MIN
) -> dict[Path, int | None]:
    """The limit of every leaf, by the ids that lead to it; they sum to `limit`. None stays None, 0 stays 0.

    Each node's part is the quota of its children. A node without children keeps its part to itself.

    Arguments: `limit` a second, >= 0, None is not limited; `children` the nodes below it; `division` a `Division`, by
    name, used at every level (proportional divides by demand, which must then be bounded: pass usage).

    Raises BadAllocation for the first mistake in the order of section 16 over the whole tree, leaves and nodes taken
    depth first; InvalidArgument for an unknown division. Source: resource-groups 8.6.
    """
    chosen = named(Division, division)
    _check(limit, children, unbounded_allowed=chosen is not Division.PROPORTIONAL)
    return dict(_leaves(limit, children, chosen, ()))


def demand_of_node(node: Node) -> int | None:
    """A leaf's demand, or the sum of the children's, None if any is unbounded. resource-groups 8.6"""
    if node.children is None:
        return node.demand
    demands = [demand_of_node(child) for child in node.children]
    return None if None in demands else sum(demand or 0 for demand in demands)


def _leaves(
    limit: int | None, children: Sequence[Node], division: Division, above: Path
) -> Iterator[tuple[Path, int | None]]:
    for child, part in zip(children, _parts(limit, children, division), strict=True):
        path = (*above, child.id_)
        if child.children is None:
            yield path, part
        else:
            yield from _leaves(part, child.children, division, path)


def _parts(limit: int | None, children: Sequence[Node], division: Division) -> Limits:
    demands: Demands = [demand_of_node(child) for child in children]
    if division is Division.EVEN:
        demands = [0] * len(children)
    return divide(division, limit, demands, [child.weight for child in children], [child.id_ for child in children])


def _check(limit: int | None, children: Sequence[Node], *, unbounded_allowed: bool) -> None:
    nodes = list(_depth_first(children))
    check_values((node.demand for node in nodes if node.children is None), unbounded_allowed=unbounded_allowed)
    check_quota(limit)
    check_weights(node.weight for node in nodes)
    for siblings in (children, *(node.children for node in nodes if node.children is not None)):
        check_ids(node.id_ for node in siblings)


def _depth_first(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _depth_first(node.children or ())
