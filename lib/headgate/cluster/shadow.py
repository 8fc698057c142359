"""What would be set and who would be held, where nothing is set: the dry run, and `headgate enforce --shadow`."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from headgate.cluster.enforce import Enforced, shown
from headgate.cluster.feed import Looked, of_resource
from headgate.cluster.schemas import ENFORCED
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit, Pushed, next_push
from headgate.core.clusters.shared_quota import TopicLook
from headgate.tables.delta import Tables

SHADOW: Final = "shadow"
_MOST_NAMED = 20
_TOLD_EVERY_US: Final = 3600 * SECOND_US


@dataclass
class _Time:
    """How long something was so, from intervals by their beginning; what overlaps counts once."""

    us: int = 0
    until_us: int = 0

    def add(self, look: TopicLook) -> None:
        self.us += max(look.at_us - max(look.from_us, self.until_us), 0)
        self.until_us = max(self.until_us, look.at_us)


@dataclass
class _Shadowed:
    """A resource in one direction. pushes: at most one, the last that would have been. topics: us of each."""

    pushes: Sequence[Pushed] = ()
    looked: _Time = field(default_factory=_Time)
    held: _Time = field(default_factory=_Time)
    topics: Counter[str] = field(default_factory=Counter)


class Shadow:
    """Nothing is set, so nothing is held back, and what a topic wants is what it gets.

    It tells whenever the limit changes that would be pushed, and each hour what it came to since the start.

    tables: where a row is written of each such change; None: nowhere. No lease is needed: rows of this action are no
    limits, and whoever has the lease, or puts limits back, ignores them. name: of this process. now_us: when it starts.
    """

    def __init__(self, tables: Tables | None, name: str, now_us: int, tell: Callable[[str], None]) -> None:
        self._tables, self._name, self._tell = tables, name, tell
        self._start_us = self._told_us = now_us
        self._shadowed: dict[str, _Shadowed] = {}

    def take(self, enforced: Sequence[Enforced], looked: Sequence[Looked], now_us: int) -> None:
        """Take in a round that was decided on. Raises TableError."""
        rows, lines = [], []
        for one in enforced:
            if one.decision is None:
                continue
            shadowed = self._shadowed.setdefault(one.name, _Shadowed())
            level = one.decision.level
            looks = of_resource(one.resource, one.direction, looked)
            for shared_by, look in sorted(looks, key=lambda found: found[1].from_us):
                if look.at_us <= self._start_us:  # it is for the level alone
                    continue
                shadowed.looked.add(look)
                if _is_above(look, level):
                    shadowed.held.add(look)
                    shadowed.topics[shared_by] += look.at_us - look.from_us
            push = next_push(shadowed.pushes, level, level, now_us, is_wanted=True)
            if push is not None:
                reason = f"{shown(one.used)} are used" if shadowed.pushes else "the first limit"
                lines.append(f"{one.name}: would push {shown(push)}; {reason}")
                rows.append(self._row(one.name, shadowed.pushes, Pushed(now_us, push), reason))
                shadowed.pushes = [Pushed(now_us, push)]
        if rows and self._tables is not None:
            self._tables.extend("enforced", pa.Table.from_pylist(rows, ENFORCED))
        for line in lines:
            self._tell(line)
        if now_us - self._told_us >= _TOLD_EVERY_US:
            self.end()
            self._told_us = now_us

    def _row(self, name: str, before: Sequence[Pushed], push: Pushed, reason: str) -> dict[str, object]:
        return {
            "at_us": push.at_us,
            "by": self._name,
            "epoch": 0,
            "resource": name,
            "path": "",
            "action": SHADOW,
            "before": _text(before[-1].limit) if before else None,
            "after": _text(push.limit),
            "reason": reason,
        }

    def end(self) -> None:
        """Tell all that it comes to."""
        for line in self.lines():
            self._tell(line)

    def lines(self) -> Iterator[str]:
        """Since the start: which resources would have been held for how long, worst first."""
        held = {name: one for name, one in self._shadowed.items() if one.held.us}
        worst = sorted(held, key=lambda name: (-held[name].held.us, name))
        for name in worst[:_MOST_NAMED]:
            one = held[name]
            ((topic, most_us),) = one.topics.most_common(1)
            others = f" and {len(one.topics) - 1} more" if len(one.topics) > 1 else ""
            yield (
                f"{name}: would have been held {_seconds(one.held.us)} of {_seconds(one.looked.us)}: "
                f"{topic} ({_seconds(most_us)}){others}"
            )
        if len(worst) > _MOST_NAMED:
            yield f"{len(worst) - _MOST_NAMED} more would have been held for a shorter time"
        rest = len(self._shadowed) - len(held)
        if not held and rest:
            yield f"none of {rest} would have been held"
        elif rest:
            yield f"{rest} more would not have been held"


def _is_above(look: TopicLook, level: Limit) -> bool:
    length_us = look.at_us - look.from_us
    return any(
        cap is not None and amount * SECOND_US > cap * length_us
        for amount, cap in zip(look.amounts, level, strict=True)
    )


def _text(limit: Limit) -> str:
    return json.dumps({unit: cap for unit, cap in limit._asdict().items() if cap is not None})


def _seconds(us: int) -> str:
    return f"{us / SECOND_US:,.0f} s"
