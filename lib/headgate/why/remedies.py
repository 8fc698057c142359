"""What would have helped: the smallest limit, a split of the quota, or a move, by the rules run over the traffic."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.why.answer import Remedy
from headgate.why.charged import Charged, runs_out, smallest_rate, sure_rate

_MOST_MOVED = 10
"""So many of the largest topics are tried for a move."""


@dataclass(frozen=True)
class Held:
    """The limiter to look at. rate: of all brokers for a group; None or 0: not known, or blocked. unit: that ran out.

    charged: all under it, from some seconds before the time in question. tenants: of its topics. others: rates of
    other brokers' limiters, with what was charged to them; asked for a broker's alone. largest: whose victim
    the topic is.
    """

    scope: str
    name: str
    unit: str
    rate: int | None
    charged: Charged
    tenants: Mapping[str, str]
    largest: str | None = None
    others: Mapping[str, tuple[int, Charged]] | None = None


def remedies(held: Held) -> Iterator[Remedy]:
    """Those that would have kept the limiter from holding anybody, in the seconds in question."""
    if held.scope == "topic":
        parts = [held.charged.of("topic", topic) for topic in held.charged.names("topic")]
        yield from _limit(held, [part.of("broker", one) for part in parts for one in part.names("broker")])
        return
    yield from _limit(held, [held.charged])
    if held.largest is not None:
        yield from _split(held, held.largest)
    if held.others is not None and held.rate:
        yield from _move(held, held.rate, held.others)


def _limit(held: Held, parts: Sequence[Charged]) -> Iterator[Remedy]:
    """parts: that have a bucket each."""
    amounts = [part.amounts(held.unit) for part in parts]
    if not any(len(one) for one in amounts):
        return
    rate, sure = max(map(smallest_rate, amounts)), max(map(sure_rate, amounts))
    what = {"topic": "a limit", "broker": "a limit of the broker", "group": f"a quota of group {held.name}"}[held.scope]
    if held.scope == "group" and held.rate and rate <= held.rate:
        words = (
            f"the quota of group {held.name} is enough: {rate:,} {held.unit}/s of {held.rate:,} would have held nobody "
            "if the brokers' shares had fitted the traffic"
        )
    else:
        words = (
            f"{what} of {rate:,} {held.unit}/s, if what comes in a second is spread evenly over it; of "
            f"{max(rate, sure):,} however it is distributed"
        )
    yield Remedy("quota" if held.scope == "group" else "limit", held.unit, words, rate, max(rate, sure), held.name)


def _split(held: Held, largest: str) -> Iterator[Remedy]:
    """The largest gets a quota of its own: what the others leave."""
    topics = [topic for topic, tenant in held.tenants.items() if tenant == largest]
    others = held.charged.but(topics).amounts(held.unit)
    if not held.rate or not len(others):
        return
    rest = smallest_rate(others)
    if rest < held.rate:
        words = (
            f"a quota of its own for {largest}: with {held.rate - rest:,} of the {held.rate:,} {held.unit}/s for it "
            f"and {rest:,} for all others, none of the others would have been held"
        )
        yield Remedy("split", held.unit, words, rest, held.rate - rest, largest)


def _move(held: Held, rate: int, others: Mapping[str, tuple[int, Charged]]) -> Iterator[Remedy]:
    """The largest topic without which the broker holds nobody, and a broker that has room for it."""
    came = sorted(held.charged.sums(held.unit), key=lambda one: (-one[1], one[0]))
    for topic, _, _ in came[:_MOST_MOVED]:
        if runs_out(held.charged.but([topic]).amounts(held.unit), rate):
            continue
        moved = held.charged.of("topic", topic)
        for broker, (room, charged) in sorted(others.items()):
            if not runs_out(charged.together(moved).amounts(held.unit), room):
                words = f"moving {topic} to {broker}: neither broker would have held anybody"
                yield Remedy("move", held.unit, words, name=topic, target=broker)
                return
