"""What belady is told before the first row: when each entry of each row is read next (entry-cache 10.4)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.core.cache.topics.topic import note_deleted
from headgate.core.kernels.cache.types import ADD, FUTURE, LEDGER_DELETE, READ, REPLAY_READ, Ints, Records
from headgate.core.numbers import MIN

Flags = NDArray[np.bool_]


class Hearing:
    """Which rows to come will change anything: those that come neither late nor of a ledger that is deleted.

    Attributes: `heard`, time and `seq` of the last row that is not late; `deleted`, ledgers by topic number.
    """

    def __init__(self) -> None:
        self.heard = (MIN, -1)
        self.deleted: dict[int, set[int]] = {}

    def reads_of(self, rows: Records, ledgers: Ints) -> Flags:
        """Of each row whether it is a read that will be applied. ledgers: of each row, any where it has none."""
        columns = (rows["t_us"], rows["seq"], rows["kind"], rows["topic"], ledgers)
        of_rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.fromiter((self._is_applied_read(*row) for row in of_rows), np.bool_, len(rows))

    def _is_applied_read(self, t_us: int, seq: int, kind: int, topic: int, ledger: int) -> bool:
        if kind < 0 or (t_us, seq) <= self.heard:
            return False
        self.heard = (t_us, seq)
        if kind not in _OF_LEDGER or ledger in self.deleted.get(topic, ()):
            return False
        if kind == LEDGER_DELETE:
            note_deleted(self.deleted.setdefault(topic, set()), ledger)
        return kind != LEDGER_DELETE


_OF_LEDGER = frozenset(map(int, (READ, REPLAY_READ, LEDGER_DELETE)))


def future_of(rows: Records, is_read: Flags, told: int) -> Records:
    """An entry in FUTURE for each one that a row adds or reads, in order; `next` is still to be linked.

    is_read: which rows are reads that are applied. told: the highest number of a read before them.
    """
    is_asked = np.isin(rows["kind"], (ADD, READ, REPLAY_READ))
    asked, counts = rows[is_asked], rows["count"][is_asked].astype(np.int64)
    firsts = np.cumsum(counts) - counts
    future = np.zeros(counts.sum(), FUTURE)
    future["number"] = np.arange(len(future)) + np.repeat(asked["entry"] - firsts, counts)
    future["space"] = np.repeat(asked["space"], counts)
    is_numbered = np.repeat(is_read[is_asked], counts)
    future["read"] = np.where(is_numbered, told + np.cumsum(is_numbered), 0)
    return future


def link(future: Records) -> None:
    """Give every entry the number of the next read of its position behind it, 0 where there is none."""
    order: Any = np.lexsort((future["number"], future["space"]))
    ordered, places = future[order], np.arange(len(future))
    begins = np.ones(len(future), np.bool_)
    begins[1:] = (ordered["number"][1:] != ordered["number"][:-1]) | (ordered["space"][1:] != ordered["space"][:-1])
    reads = np.append(ordered["read"], 0)
    following = np.where(ordered["read"] > 0, places, len(future))
    following = np.append(np.minimum.accumulate(following[::-1])[::-1], len(future))[1:]
    positions = np.append(np.cumsum(begins), 0)
    future["next"][order] = np.where(positions[following] == positions[:-1], reads[following], 0)
