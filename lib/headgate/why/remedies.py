"""What would have helped: the smallest limit, a split of the quota, or a move, by the rules run over the traffic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.quota.usage.excess import UNITS
from headgate.why.answer import Remedy
from headgate.why.charged import Charged, Ints, mean_rate, runs_out, smallest_rate, sure_rate

_MOST_MOVED = 10
"""So many of the largest topics are tried for a move."""
_EVENLY = "if what comes in a second is spread evenly over it"


@dataclass(frozen=True)
class Held:
    """The limiter to look at. rates: by unit, of all brokers for a group; None for not limited, 0 for blocked. unit:
    that ran out.

    charged: all under it, from some seconds before the time in question, which begins with first_s. tenants: of its
    topics. others: rates in `unit` of other brokers' limiters, with what was charged to them; asked for a broker's
    alone. culprit: whose victim the topic is.
    """

    scope: str
    name: str
    unit: str
    rates: Mapping[str, int | None]
    charged: Charged
    first_s: int
    tenants: Mapping[str, str]
    culprit: str | None = None
    others: Mapping[str, tuple[int, Charged]] | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether it is a group with a rate of 0."""
        return self.scope == "group" and 0 in self.rates.values()

    @property
    def is_on_one_broker(self) -> bool:
        """Whether one bucket had all of it: shares of several brokers follow the traffic, which nothing here does."""
        return self.scope != "group" or len(self.charged.names("broker")) <= 1


class _Rate(NamedTuple):
    """unit: that is limited. even, sure: the smallest rates; sure: None where it is not known."""

    unit: str
    even: int
    sure: int | None

    @property
    def words(self) -> str:
        """Both."""
        sure = "" if self.sure is None else f" ({self.sure:,} however it is distributed)"
        return f"{self.even:,} {self.unit}/s{sure}"


def remedies(held: Held) -> Iterator[Remedy]:
    """Those that would have kept the limiter from holding anybody, in the seconds in question."""
    yield from _limit(held)
    if held.culprit is not None and not held.is_blocked:
        yield from _split(held, held.culprit)
    if held.others is not None and held.rates[held.unit]:
        yield from _move(held, held.rates[held.unit] or 0, held.others)


def would_hold(held: Held) -> bool:
    """Whether the limiter would hold anybody, at its rate in `unit`."""
    rate = held.rates[held.unit]
    return bool(rate) and any(runs_out(part.amounts(held.unit), rate or 1) for part in _buckets(held, held.charged))


def _limit(held: Held) -> Iterator[Remedy]:
    found = _rates(held, held.charged)
    if not found:
        return
    main = found[0]
    what = {"topic": "a limit", "broker": "a limit of the broker", "group": f"a quota of group {held.name}"}[held.scope]
    now = held.rates[held.unit]
    if held.is_blocked:
        words = f"a quota of group {held.name} that is not 0: {' and '.join(one.words for one in found)}, {_EVENLY}"
    elif held.scope == "group" and now and main.even <= now and len(found) == 1:
        words = (
            f"the quota of group {held.name} is enough: {main.even:,} {held.unit}/s of {now:,} would have held nobody "
            f"if the brokers' shares had fitted the traffic, and {_EVENLY}"
        )
    elif held.scope != "group" and now and main.even <= now and len(found) == 1 and main.sure is not None:
        found = [main._replace(even=main.sure)]
        words = (
            f"{what} of {main.sure:,} {held.unit}/s; its {now:,} would have held nobody if what comes in a second were "
            "spread evenly over it"
        )
    else:
        shares = "" if held.is_on_one_broker else ", and the brokers' shares fit the traffic"
        words = f"{what} of {' and '.join(one.words for one in found)}, {_EVENLY}{shares}"
    yield _remedy("quota" if held.scope == "group" else "limit", found, words, held.name)


def _split(held: Held, culprit: str) -> Iterator[Remedy]:
    """The culprit gets a quota of its own: what the others leave."""
    topics = [topic for topic, tenant in held.tenants.items() if tenant == culprit]
    found = _rates(held, held.charged.but(topics))
    now = held.rates[held.unit]
    if not now or len(found) != 1 or found[0].even >= now:
        return
    rest = now - found[0].even
    words = (
        f"a quota of its own for {culprit}: with {rest:,} of the {now:,} {held.unit}/s for it and {found[0].words} for "
        f"all others, none of the others would have been held, {_EVENLY}"
    )
    yield _remedy("split", found, words, culprit, rest)


def _remedy(kind: str, found: Sequence[_Rate], words: str, name: str, rest: int | None = None) -> Remedy:
    main, also = found[0], found[1] if len(found) > 1 else None
    other = None if also is None else (also.unit, also.even, also.sure)
    return Remedy(kind, main.unit, words, main.even, main.sure, other, rest, name)


def _rates(held: Held, charged: Charged) -> list[_Rate]:
    """The smallest rate in the unit that ran out; and in the other one if its rate would not do, or is 0."""
    found = []
    for unit in sorted(UNITS, key=lambda unit: unit != held.unit):
        now = held.rates[unit]
        amounts = [part.amounts(unit) for part in _buckets(held, charged)]
        is_asked = unit == held.unit or (now is not None and (now == 0 or any(runs_out(one, now) for one in amounts)))
        if is_asked and any(len(one) for one in amounts):
            found.append(_smallest(held, unit, amounts, charged))
    return found


def _smallest(held: Held, unit: str, amounts: Sequence[Ints], charged: Charged) -> _Rate:
    """Not below the mean of the time in question, which a longer time of the same would need."""
    even = max(mean_rate(part.since(held.first_s).amounts(unit)) for part in _buckets(held, charged))
    for one in amounts:
        even = smallest_rate(one) if even == 0 or runs_out(one, even) else even
    sure = max(even, *map(sure_rate, amounts)) if held.is_on_one_broker else None
    return _Rate(unit, even, sure)


def _buckets(held: Held, charged: Charged) -> list[Charged]:
    """Parts that have a bucket each: every topic on every broker has one of its own, else all together have one."""
    if held.scope != "topic":
        return [charged]
    parts = [charged.of("topic", topic) for topic in charged.names("topic")]
    return [part.of("broker", broker) for part in parts for broker in part.names("broker")]


def _move(held: Held, rate: int, others: Mapping[str, tuple[int, Charged]]) -> Iterator[Remedy]:
    """The largest topic without which the broker holds nobody, and a broker that has room for it."""
    came = sorted(held.charged.sums(held.unit), key=lambda one: (-one[1], one[0]))
    for topic, _, _ in came[:_MOST_MOVED]:
        if runs_out(held.charged.but([topic]).amounts(held.unit), rate):
            continue
        moved = held.charged.of("topic", topic)
        for broker, (room, charged) in sorted(others.items()):
            if not runs_out(charged.together(moved).amounts(held.unit), room):
                words = f"moving {topic} to {broker}: neither broker would have held anybody for {held.unit}, {_EVENLY}"
                yield Remedy("move", held.unit, words, name=topic, target=broker)
                return
