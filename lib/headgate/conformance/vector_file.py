"""Vector files: JSON with a format number and a list of vectors, each with an id and a kind."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from headgate.errors import ConformanceError

FORMAT = 1
Vector = dict[str, Any]
Kind = TypeVar("Kind")
SHOWN = 200


def vector_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that `paths` name, in order; a folder stands for its *.json. Raises ConformanceError for none."""
    files: list[Path] = []
    for path in map(Path, paths):
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise ConformanceError(f"{path}: the folder has no *.json; name a vector file or a folder of them")
        files.extend(found)
    return files


def read_vectors(path: Path) -> list[Vector]:
    """The vectors of one file. Raises ConformanceError for an unreadable file, another format or a malformed vector."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConformanceError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict) or type(content.get("format")) is not int or content["format"] != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ConformanceError(f"{path}: format {got!r}, known is {FORMAT}")
    vectors = content.get("vectors")
    if not isinstance(vectors, list):
        raise ConformanceError(f"{path}: 'vectors' is missing or no list")
    for position, vector in enumerate(vectors):
        _check_vector(path, position, vector)
    return vectors


def _check_vector(path: Path, position: int, vector: object) -> None:
    if not isinstance(vector, dict):
        raise ConformanceError(f"{path}: vector {position} is no object")
    for key in ("id", "kind"):
        if not isinstance(vector.get(key), str):
            raise ConformanceError(f"{path}: vector {position}: {key!r} is missing or no string")


def field_of(owner: Any, key: str, kind: type[Kind]) -> Kind:
    """The field `key` of a vector or op, of type `kind`. Raises ConformanceError where it is missing or another."""
    if not isinstance(owner, dict) or key not in owner:
        raise ConformanceError(f"malformed vector: {key!r} is missing in {shortened(owner)}")
    value = owner[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConformanceError(f"malformed vector: {key!r} is no {kind.__name__} in {shortened(owner)}")
    return value


def shortened(value: Any) -> str:
    """`value` as JSON of at most 200 characters, for messages."""
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
