"""Views of a cell, written by hand: what the tests of evaluations give to `step`."""

from headgate.core.quota.evaluation.cell_view import CellMember, CellRow, CellView

E = 100


def active(broker, demand, limit, *, behind=0, unheard=None, weight=1, idle=False, admitted=None):
    """A member of M. behind: epochs its row is older than the view. unheard: epochs since it was heard of."""
    heard = E - (behind if unheard is None else unheard)
    used = admitted if admitted is not None else min(value for value in (demand, limit, 0) if value is not None)
    row = CellRow(E - behind, used, demand, limit, idle)
    return CellMember(broker, weight, heard, missing=heard < E, active=True, row=row)


def outside(broker, *, unheard=0, weight=1, row=None):
    """A member of C that is not in M."""
    return CellMember(broker, weight, E - unheard, missing=unheard > 0, active=False, row=row)


def awaited(broker, *, joined=0, weight=1):
    """A member of which nothing was ever heard. joined: epochs since it did."""
    return CellMember(broker, weight, E - joined - 1, missing=joined >= 0, active=False, row=None, unheard=True)


def view(*members, raises_gated=False):
    return CellView(E, members, raises_gated)
