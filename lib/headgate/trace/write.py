"""A trace on disk: files in arrival order, or one Delta commit a file."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import write_deltalake

from headgate.errors import ConfError, InputError
from headgate.rows.listing import FORMATS, TEXT_FORMATS
from headgate.stores import is_stored
from headgate.trace.defects import TEXT_DEFECTS, TYPED_DEFECTS, Defects, chosen_defects, spoil_table
from headgate.trace.events import Rows, TraceGenerator
from headgate.trace.lines import csv_header, csv_lines, json_lines, line_batches, line_bytes
from headgate.trace.spec import TraceSpec
from headgate.trace.summary import TraceSummary

MTIME_STEP_NS = 1_000_000  # streaming file sources compare whole milliseconds

OnFile = Callable[[TraceSummary], None]


def write_trace(spec: TraceSpec, path: Path | str, file_format: str, on_file: OnFile | None = None) -> TraceSummary:
    """Write the trace into a new or empty folder; JSON and CSV files of equal specs are equal byte by byte.

    Each file appears whole and under its final name, with a modification time at least 1 ms after the one before, so
    that a stream that already watches the folder reads the files in order. Delta gets one commit a file.

    `file_format` is one of FORMATS; `on_file` is called after each file with the summary so far.
    Raises ConfError if the format is unknown or the folder holds anything, InputError if it cannot be made.
    """
    folder = new_folder(Path(path), file_format)
    kinds = TEXT_DEFECTS if file_format in TEXT_FORMATS else TYPED_DEFECTS
    generator, summary, mtime_ns = TraceGenerator(spec), TraceSummary(), 0
    for index in range(spec.files):
        rows = generator.rows(index)
        defects = chosen_defects(rows.spoil, spec.bad_share, kinds)
        if file_format == "delta":
            write_deltalake(folder, spoil_table(rows.table, defects), mode="append")
        else:
            mtime_ns = max(mtime_ns + MTIME_STEP_NS, time.time_ns() // MTIME_STEP_NS * MTIME_STEP_NS)
            _write_file(folder / f"part-{index:05d}.{file_format}", rows, defects, mtime_ns)
        summary.add(rows, defects, kinds)
        if on_file is not None:
            on_file(summary)
    return summary


def new_folder(folder: Path, file_format: str) -> Path:
    """The folder, made if need be.

    Raises ConfError for an unknown format, and where it holds anything; InputError where it cannot be made.
    """
    mistakes = []
    if is_stored(str(folder)):
        mistakes.append(f"output: got {folder}, on an object store; allowed a folder on a disk: write it, then copy it")
        raise ConfError(mistakes)
    if file_format not in FORMATS:
        mistakes.append(f"format: got {file_format!r}, allowed {', '.join(FORMATS)}")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            mistakes.append(f"output: got {folder}, which exists and is not empty; allowed a new or an empty folder")
        if not mistakes:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output: {folder} cannot be made: {error.strerror}; give a new or empty folder") from error
    if mistakes:
        raise ConfError(mistakes)
    return folder


def _write_file(path: Path, rows: Rows, defects: Defects, mtime_ns: int) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    if path.suffix == ".parquet":
        pq.write_table(spoil_table(rows.table, defects), unfinished)
    else:
        _write_lines(unfinished, rows, defects, csv=path.suffix == ".csv")
    os.utime(unfinished, ns=(mtime_ns, mtime_ns))
    unfinished.rename(path)


def _write_lines(path: Path, rows: Rows, defects: Defects, *, csv: bool) -> None:
    with path.open("wb") as file:
        if csv:
            file.write(csv_header(rows.table).encode())
        for lines in line_batches(rows.table, defects, csv_lines if csv else json_lines):
            file.write(line_bytes(lines))
