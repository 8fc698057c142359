"""What an open connection refuses: the first match of throttle-protocol 15, in its order.

Only what passes may change a connection. Nothing that a field can hold makes a check raise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.core.numbers import MAX, MIN
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import Input
from headgate.core.protocol.broker.outputs import BadInput
from headgate.core.protocol.reasons import CONDITIONS, COOPERATIVE, Reason

ONE_OR_TWO = (1, 2)
PAIR = 2


class OfTopic(Protocol):
    """A producer, as far as checks look at it."""

    @property
    def topic(self) -> str:
        """Full name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What inputs are checked against: the open producers, the connection's flag, and whether marks need balances."""

    producers: Mapping[int, OfTopic]
    supports: bool
    needs_buckets: bool


def is_time(value: object) -> bool:
    """Times are integers from 0 to 2^63-1."""
    return _is_integer(value, 0)


def error_in(given: Input, facts: Facts) -> BadInput | None:
    """Why an input with a good time is refused, None where it is not."""
    for error, is_wrong in _CHECKS[type(given)]:
        if is_wrong(given, facts):
            return error
    return None


def error_in_release(reason: object, ordinal: object) -> BadInput | None:
    """Why an Unmark with these is refused, whatever producer it names; None where it is not."""
    if not _is_one_of(COOPERATIVE, reason):
        return BadInput.BAD_REASON
    return None if _is_integer(ordinal, 1) else BadInput.BAD_ORDINAL


def _is_unknown(given: Any, facts: Facts) -> bool:
    return type(given.producer) is not int or given.producer not in facts.producers


def _has_bad_trips(mark: inputs.Mark, _: Facts) -> bool:
    reasons = [trip.reason for trip in mark.trips or ()]
    return not reasons or not all(_is_one_of(COOPERATIVE, code) for code in reasons) or len({*reasons}) < len(reasons)


def _has_bad_trip_ordinals(mark: inputs.Mark, _: Facts) -> bool:
    return not all(_is_integer(trip.ordinal, 1) for trip in mark.trips)


def _has_bad_trip_buckets(mark: inputs.Mark, facts: Facts) -> bool:
    return facts.needs_buckets and not all(_are_buckets(trip.buckets) for trip in mark.trips)


def _is_no_limiter(given: inputs.Quote | inputs.Unmark, _: Facts) -> bool:
    return not _is_one_of(COOPERATIVE, given.reason)


def _is_no_condition(given: inputs.ConditionSet | inputs.ConditionClear, _: Facts) -> bool:
    return not _is_one_of(CONDITIONS, given.reason)


def _has_bad_ordinal(given: Any, _: Facts) -> bool:
    return not _is_integer(given.ordinal, 1)


def _has_bad_buckets(quote: inputs.Quote, _: Facts) -> bool:
    return not _are_buckets(quote.buckets)


def _has_bad_producer(given: inputs.Open, _: Facts) -> bool:
    return not _is_integer(given.producer, 0) or not isinstance(given.topic, str)


def _has_other_topic(given: inputs.Open, facts: Facts) -> bool:
    return given.producer in facts.producers and facts.producers[given.producer].topic != given.topic


def _has_bad_request_id(receipt: inputs.Receipt, _: Facts) -> bool:
    return not _is_integer(receipt.request_id, 0)


def _has_other_flag(connect: inputs.Connect, facts: Facts) -> bool:
    return (connect.supports is True) is not facts.supports


def _is_integer(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX


def _is_one_of(reasons: frozenset[Reason], code: object) -> bool:
    return isinstance(code, int) and type(code) is not bool and code in reasons


def _are_buckets(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) in ONE_OR_TWO and all(map(_is_bucket, value))


def _is_bucket(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == PAIR
    return is_pair and _is_integer(value[0], MIN) and _is_integer(value[1], 1)


Check = tuple[BadInput, Callable[[Any, Facts], bool]]

_UNKNOWN: Check = (BadInput.UNKNOWN_PRODUCER, _is_unknown)
_ORDINAL: Check = (BadInput.BAD_ORDINAL, _has_bad_ordinal)
_LIMITER: Check = (BadInput.BAD_REASON, _is_no_limiter)
_CONDITION: Check = (BadInput.BAD_REASON, _is_no_condition)

_CHECKS: dict[type, tuple[Check, ...]] = {
    inputs.Connect: ((BadInput.DUPLICATE_CONNECTION, _has_other_flag),),
    inputs.Open: ((BadInput.BAD_PRODUCER, _has_bad_producer), (BadInput.DUPLICATE_PRODUCER, _has_other_topic)),
    inputs.Publish: (_UNKNOWN,),
    inputs.Mark: (
        _UNKNOWN,
        (BadInput.BAD_REASON, _has_bad_trips),
        (BadInput.BAD_ORDINAL, _has_bad_trip_ordinals),
        (BadInput.BAD_BUCKET, _has_bad_trip_buckets),
    ),
    inputs.Receipt: ((BadInput.BAD_REQUEST_ID, _has_bad_request_id),),
    inputs.Quote: (_UNKNOWN, _LIMITER, (BadInput.BAD_BUCKET, _has_bad_buckets)),
    inputs.ConditionSet: (_CONDITION, _ORDINAL),
    inputs.Unmark: (_UNKNOWN, _LIMITER, _ORDINAL),
    inputs.ConditionClear: (_CONDITION, _ORDINAL),
    inputs.CloseProducer: (_UNKNOWN,),
    inputs.Close: (),
    inputs.Probe: (),
}
