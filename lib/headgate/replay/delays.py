"""How long each publish of offered traffic waited, from what a form was given and what it returned.

The tables know sums of delays by topic and second; for their distribution each delay is needed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headgate.core.kernels.columns import Ints
from headgate.core.kernels.publish.types import MARK, PUBLISH
from headgate.throttle.form import Form, Result, Rules, Step
from headgate.throttle.state import WITHHELD_FIELDS, DomainState

_MS_NS = 1_000_000


class Arrivals(NamedTuple):
    """Publishes of offered traffic, in columns: those that were withheld before a step, then those of the step."""

    producer: Ints
    at_ns: Ints
    topic: Ints
    messages: Ints
    bytes: Ints
    seq: Ints

    def only(self, rows: Ints) -> "Arrivals":
        """These rows."""
        return Arrivals(*(column[rows] for column in self))


class Delays(NamedTuple):
    """Publishes that were let in after they had waited, each with its topic's position."""

    topic: Ints
    delay_ns: Ints
    messages: Ints


class TimedForm:
    """A form (form.Form) that does what the one inside does, and tells how long what it let in had waited.

    Every publish has a `seq` of its own, which grows in the order in which publishes act. Then each mark names the
    publish that was throttled, and what its producer sent later waits for the producer's next release: a mark and the
    release after it tell when. In offered traffic each stands for one row (Result.mark_times). The marks themselves end
    here: a replay writes none, and their table takes time.
    """

    def __init__(self, form: Form, hear: Callable[[DomainState, Delays], None]) -> None:
        self._form = form
        self._hear = hear

    def __call__(self, domain: DomainState, step: Step, rules: Rules) -> Result:
        """See form.Form."""
        waiting = domain.entry_producer
        withheld = Arrivals(*(domain.withheld[name] for name in WITHHELD_FIELDS))
        result = self._form(domain, step, rules)
        if rules.offered and (result.mark_action != MARK).any():
            arrivals = _joined(withheld, step)
            delays = delays_of(arrivals, waiting, result, rules.send_timeout_ms * _MS_NS, domain.withheld["seq"])
            if len(delays.topic):
                self._hear(domain, delays)
        return _without_marks(result)


def _without_marks(result: Result) -> Result:
    if not len(result.mark_at_ns):
        return result
    return result._replace(**{name: getattr(result, name)[:0] for name in result._fields if name.startswith("mark_")})


def _joined(withheld: Arrivals, step: Step) -> Arrivals:
    operations = step.operations
    rows = np.flatnonzero(operations.kind == PUBLISH)
    new = Arrivals(
        *(operations.producer[rows], operations.at_ns[rows], operations.topic[rows]),
        *(operations.messages[rows], operations.bytes[rows], operations.seq[rows]),
    )
    return Arrivals(*(np.concatenate(pair) for pair in zip(withheld, new, strict=True)))


def delays_of(arrivals: Arrivals, waiting: Ints, result: Result, timeout_ns: int, kept_seq: Ints) -> Delays:
    """The delays of the arrivals that were let in late.

    waiting: the producers of the queue entries before the step. kept_seq: of the arrivals that are withheld after it.
    """
    released = np.unique(result.mark_producer[result.mark_action != MARK])
    arrivals = arrivals.only(np.flatnonzero(np.isin(arrivals.producer, released)))
    if not len(arrivals.seq):
        return Delays(*(arrivals.seq,) * 3)
    low = int(min(arrivals.seq.min(), result.mark_seq[result.mark_action == MARK].min(initial=arrivals.seq.min())))
    span = int(max(arrivals.seq.max(), result.mark_seq.max())) - low + 2
    producer, after, at_ns = _releases(waiting, result, low)
    codes = arrivals.producer * span + arrivals.seq - low + 1
    marked = result.mark_action == MARK
    marks = np.sort(result.mark_producer[marked] * span + result.mark_seq[marked] - low + 1)
    before = np.append(marks, -1)[np.searchsorted(marks, codes, side="left") - 1]
    before = np.where(before // span == arrivals.producer, before, arrivals.producer * span)
    ends = producer * span + after
    found = np.searchsorted(ends, before, side="left")
    is_found = np.append(ends, -1)[found] == before
    let_in_ns = np.append(at_ns, 0)[found]
    late = is_found & (let_in_ns > arrivals.at_ns) & (let_in_ns - arrivals.at_ns <= timeout_ns)
    late &= ~np.isin(arrivals.seq, kept_seq)
    rows = np.flatnonzero(late)
    return Delays(arrivals.topic[rows], let_in_ns[rows] - arrivals.at_ns[rows], arrivals.messages[rows])


def _releases(waiting: Ints, result: Result, low: int) -> tuple[Ints, Ints, Ints]:
    """When producers waited for nothing any more: producer, which mark was its last before, counted from 1, and when.

    0 in place of the mark: none of this step. In the order of producer, then time.
    """
    order = np.argsort(result.mark_producer, kind="stable")
    producer = result.mark_producer[order]
    is_mark = result.mark_action[order] == MARK
    starts = np.flatnonzero(np.append(True, producer[1:] != producer[:-1]))
    lengths = np.diff(np.append(starts, len(producer)))
    change = np.where(is_mark, 1, -1)
    total = np.cumsum(change)
    before = np.bincount(waiting, minlength=int(producer.max()) + 1)[producer[starts]]
    waits = total - np.repeat(total[starts] - change[starts] - before, lengths)
    row = np.arange(len(producer))
    last = np.maximum.accumulate(np.where(is_mark, row, -1))
    has_mark = last >= np.repeat(starts, lengths)
    after = np.where(has_mark, result.mark_seq[order][np.maximum(last, 0)] - low + 1, 0)
    rows = np.flatnonzero(~is_mark & (waits == 0))
    return producer[rows], after[rows], result.mark_at_ns[order][rows]
