"""Numbers as pictures of characters: bars and sparklines, each of a fixed width."""

from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_GAP = " "


def bar(part: float, width: int) -> str:
    """`part` of `width` characters, filled to the eighth; more than all of it is all of it.

    part: from 0; anything above 0 shows, and only all of it is full.
    """
    eighths = min(int(part * width * 8), width * 8)
    if part > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def sparkline(values: Sequence[int | None], width: int, scale: int = 0) -> str:
    """One character a value, whose height goes from 0 to `scale`, or to the largest value where that is more.

    None is a gap. More values than `width` are drawn by the largest of each of `width` equal runs.
    """
    runs = _runs(values, width)
    top = max([scale, *(value for value in runs if value is not None)])
    return "".join(_GAP if value is None else _LEVELS[_level(value, top)] for value in runs)


def _level(value: int, top: int) -> int:
    return value * (len(_LEVELS) - 1) // top if top else 0


def _runs(values: Sequence[int | None], width: int) -> list[int | None]:
    if len(values) <= width:
        return list(values)
    edges = [place * len(values) // width for place in range(width + 1)]
    runs = (values[start:end] for start, end in pairwise(edges))
    return [max((value for value in run if value is not None), default=None) for run in runs]
