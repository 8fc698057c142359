"""The files at a path. Nothing heavy is imported here: what is wrong with a path is said at once."""

from collections.abc import Iterator
from glob import glob
from pathlib import Path

STDIN = "-"


def files_at(path: str) -> Iterator[Path]:
    """The files at a path or pattern; those with hidden names are no input."""
    for place in map(Path, [path] if Path(path).exists() else sorted(glob(path))):  # noqa: PTH207  as the user wrote it
        if place.is_file():
            yield place
        else:
            yield from (file for file in sorted(place.rglob("*")) if file.is_file() and not _is_hidden(file, place))


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
