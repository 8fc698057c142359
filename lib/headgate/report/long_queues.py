"""Limits that have been exceeded for so long that what their limiters release one day is too much for a batch."""

import pyarrow as pa

from headgate.report.screen import plain

MANY, AGAIN = 1_000_000, 10


class LongQueues:
    """Names a broker once when MANY marks of its publishes are not released, and at each AGAIN times as many."""

    def __init__(self) -> None:
        self._waiting = dict[tuple[str, str], int]()
        self._named = dict[str, int]()
        """Brokers, with the number at which each is named next."""

    def lines(self, progress: pa.Table) -> list[str]:
        """What is to be said of a batch. progress: schemas.PROGRESS."""
        columns = [progress[name].to_pylist() for name in ("key", "broker", "waiting", "subscriptions")]
        for key, broker, waiting, subscriptions in zip(*columns, strict=True):
            self._waiting[key, broker] = waiting - subscriptions
        lines = []
        for broker in sorted(set(columns[1])):
            marks = sum(count for (_, of), count in self._waiting.items() if of == broker)
            if marks >= self._named.get(broker, MANY):
                self._named[broker] = AGAIN * marks
                lines.append(
                    f"{plain(broker)}: {marks:,} marks of publishes are not released, as a limit is always exceeded; "
                    "one day they are a row each of one batch: raise or enforce the limit now "
                    '(docs/operations.md, "What grows")'
                )
        return lines
