"""What a broker knows of one cell as of one epoch: the input of every evaluation (resource-groups 7.3, 9.2).

A cell is a group, class and dimension. All of a view describes the same epoch, the evaluating broker's own part
included: fresh own demand beside old demand of others would make all waking brokers claim the same capacity at once.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellRow:
    """A member's row at e: its accepted row with the largest epoch <= e.

    epoch: that of the row, <= e.
    admitted: messages or bytes a second, 0 to RATE_MAX.
    demand: `demand_of` the row, a second; None is unbounded.
    limit: in force at the end of the epoch, a second; None is not limited.
    idle: nothing admitted, offered or throttled, in either dimension.
    """

    epoch: int
    admitted: int
    demand: int | None
    limit: int | None
    idle: bool


@dataclass(frozen=True, slots=True)
class CellMember:
    """A broker that membership lists as up, and what was heard of it for the cell.

    weight: 1 to 1000.
    covered_epoch: n_j, the newest epoch <= e that its rows or heartbeats cover; never heard: its join epoch minus 1.
    missing: no heartbeat of it for e or later, though it had joined by e.
    active: it belongs to M, so it has a row.
    row: None where it has none at e.
    unheard: nothing of its present life came for the cell, neither a row nor a heartbeat.
    """

    broker_id: int
    weight: int
    covered_epoch: int
    missing: bool
    active: bool
    row: CellRow | None
    unheard: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether it had joined by e and never said a word: it enforces its first limit, whatever that carries.

        resource-groups 9.2, First limit
        """
        return self.unheard and self.missing


@dataclass(frozen=True, slots=True)
class CellView:
    """All members C as of the epoch `as_of`, each once, in any order.

    raises_gated: every raise takes the gated branch, as in the extra evaluation after an early row where a job
    evaluates one broker (resource-groups 9.2). Where one job evaluates all brokers an extra evaluation counts as
    complete: no member is missing in its view.
    """

    as_of: int
    members: tuple[CellMember, ...]
    raises_gated: bool = False


def demand_of(*, idle: bool, admitted: int, offered: int | None, throttled: bool) -> int | None:
    """D of one row in one dimension, a second; None is unbounded. resource-groups 7.3

    A throttled row without visible demand could have used any amount.
    """
    if idle:
        return 0
    if offered is not None:
        return offered
    return None if throttled else admitted


def lingers(covered_epoch: int, first_idle_epoch: int, linger_rounds: int) -> bool:
    """Whether a member whose row is idle still belongs to M. resource-groups 7.3

    covered_epoch: its n_j. first_idle_epoch: that of the first idle row after its newest row that is not.
    """
    return covered_epoch - first_idle_epoch < linger_rounds
