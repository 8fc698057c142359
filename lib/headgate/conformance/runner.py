"""The replay of whole files: every vector from a fresh object, no clock, no sleep."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headgate.conformance.registry import KINDS, VectorKind
from headgate.conformance.report import Report, VectorResult
from headgate.conformance.timed import UnsupportedVectorError
from headgate.conformance.vector_file import Vector, read_vectors, vector_files
from headgate.errors import ConformanceError

NO_ARRAY_FORM = "no array form"


def replay(paths: Iterable[str | Path], *, kernel: bool = False) -> Report:
    """Replay every vector of `paths` (files, or folders of *.json) and report one result each.

    `kernel` replays the array forms; kinds without one are skipped. Raises ConformanceError, before anything is
    replayed, for an unreadable file, an unknown format number or an unknown kind.
    """
    vectors = [(file, vector) for file in vector_files(paths) for vector in read_vectors(file)]
    for file, vector in vectors:
        _kind(file, vector)
    return Report([replay_vector(file, vector, kernel=kernel) for file, vector in vectors])


def replay_vector(file: Path, vector: Vector, *, kernel: bool = False) -> VectorResult:
    """Replay one vector of `file` and return its result. Raises ConformanceError for an unknown kind."""
    kind, vector_id, name = _kind(file, vector), vector["id"], vector["kind"]
    factories = _array_forms() if kernel else {name: kind.factory}
    if name not in factories:
        return VectorResult(file, vector_id, name, skip_reason=NO_ARRAY_FORM)
    try:
        mismatches = kind.replay(factories[name], vector)
    except UnsupportedVectorError as unsupported:
        return VectorResult(file, vector_id, name, skip_reason=str(unsupported))
    except ConformanceError as malformed:
        raise ConformanceError(f"{file}: vector {vector_id!r}: {malformed}") from malformed
    return VectorResult(file, vector_id, name, tuple(mismatches))


def _kind(file: Path, vector: Vector) -> VectorKind:
    name = vector["kind"]
    if name not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise ConformanceError(f"{file}: vector {vector['id']!r}: unknown kind {name!r}, known are {known}")
    return KINDS[name]


def _array_forms() -> Mapping[str, Any]:
    from headgate.conformance.kernel_adapters import KERNEL_ADAPTERS  # noqa: PLC0415  kernels take time to load

    return KERNEL_ADAPTERS
