"""Lines of CSV files to columns, on the workers. No engine: Arrow in, Arrow out."""

import csv
from collections.abc import Iterator, Sequence

import pyarrow as pa

COLUMNS = (
    *("event_time", "seq", "broker", "topic", "kind", "producer", "connection", "subscription", "client", "consumer"),
    *("consumer_id", "bundle", "action", "command", "io_thread", "duration_ms", "messages", "bytes", "entries"),
    *("caught_up", "filtered"),
)
"""What a traffic row has; docs/tables.md describes each."""

NO_HEADER = "the file does not begin with a header that names columns of"


def csv_rows(columns: Sequence[str]) -> pa.Schema:
    """What `split_csv` makes of lines."""
    names = [(name, pa.string()) for name in (*columns, "raw", "source")]
    return pa.schema([*names, ("offset", pa.int64()), ("defect", pa.string())])


def split_csv(batches: Iterator[pa.RecordBatch], columns: Sequence[str] = COLUMNS) -> Iterator[pa.RecordBatch]:
    """Lines (`raw`, `source`, `defect`) in, `csv_rows` out: one record a line, quoted as in RFC 4180.

    The header is the first line that is not blank; blank lines are left out, but counted. Where that line names no
    known column, it is taken for a record, and every line of the file is a bad row. A task sees each of its files from
    the first line to the last.
    """
    headers: dict[str, list[str] | None] = {}
    lines: dict[str, int] = {}
    for batch in batches:
        rows = []
        for line in batch.to_pylist():
            raw, source = line["raw"], line["source"]
            lines[source] = lines.get(source, 0) + 1
            if not raw.strip():
                continue
            fields, defect = _fields(raw.removeprefix("\ufeff"))
            if source not in headers:
                names = [field.strip() for field in fields]
                headers[source] = names if set(names) & set(columns) else None
                if headers[source] is not None:
                    continue
            row = _row(headers[source], fields, line["defect"] or defect, columns)
            rows.append(row | {"raw": raw, "source": source, "offset": lines[source]})
        yield pa.RecordBatch.from_pylist(rows, csv_rows(columns))


def _fields(raw: str) -> tuple[list[str], str | None]:
    try:
        return next(csv.reader([raw], strict=True), []), None
    except csv.Error as error:
        return [], f"the line is not CSV: {error}"


def _row(
    header: list[str] | None, fields: list[str], defect: str | None, columns: Sequence[str]
) -> dict[str, str | None]:
    """Columns by name, an empty field being null; or no columns and the defect."""
    if header is None:
        defect = f"{NO_HEADER} {', '.join(columns)}"
    elif defect is None and len(fields) != len(header):
        defect = f"the line has {len(fields)} fields, the header of its file has {len(header)}"
    named = dict(zip(header, fields, strict=True)) if header and not defect else {}
    return {name: named.get(name) or None for name in columns} | {"defect": defect}
