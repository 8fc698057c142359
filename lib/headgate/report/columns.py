"""Tables of plain lines."""

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Lines whole however wide: names are there to be copied. sides: < or > for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        yield "  ".join(cells).rstrip()
