"""A trace as text: one JSON object or one CSV row a line. Good values need no escaping: names are plain ASCII."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.defects import Defects, cut_malformed, spoil_text

MOST_LINES = 65_536


def line_batches(
    table: pa.Table, defects: Defects, encode: Callable[[pa.Table, Defects], pa.Array]
) -> Iterator[pa.Array]:
    """The rows as lines, a bounded number at a time. `defects` numbers TEXT_DEFECTS, `encode` is one of those below."""
    begin = 0
    for batch in table.to_batches(max_chunksize=MOST_LINES):
        end = begin + batch.num_rows
        yield encode(pa.Table.from_batches([batch]), defects[begin:end])
        begin = end


def json_lines(table: pa.Table, defects: Defects) -> pa.Array:
    """One JSON object a row, without line ends, keys in the schema's order. `table` is one contiguous batch."""
    columns = {name: _json_value(column) for name, column in _texts(table).items()}
    parts: list[pa.Array | str] = []
    for name, column in spoil_text(table, columns, defects, '"{}"'.format, "null").items():
        parts += [f',"{name}":' if parts else f'{{"{name}":', column]
    return cut_malformed(pc.binary_join_element_wise(*parts, "}", ""), defects)


def csv_lines(table: pa.Table, defects: Defects) -> pa.Array:
    """One CSV row a row, without line ends. `table` is one contiguous batch."""
    columns = {name: pc.fill_null(column.cast(pa.string()), "") for name, column in _texts(table).items()}
    return cut_malformed(
        pc.binary_join_element_wise(*spoil_text(table, columns, defects, str, "").values(), ","), defects
    )


def csv_header(table: pa.Table) -> str:
    return f"{','.join(table.column_names)}\n"


def line_bytes(lines: pa.Array) -> pa.Buffer:
    """The lines, each with its line end, as the bytes of a file."""
    ended = pc.binary_join_element_wise(lines, "\n", "")
    values = ended.buffers()[2]
    return values.slice(0, pc.sum(pc.binary_length(ended)).as_py())


def _texts(table: pa.Table) -> dict[str, pa.Array]:
    """Columns with the time as ISO 8601 in UTC with six decimals; the others as they are."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    spaced = columns["event_time"].cast(pa.timestamp("us")).cast(pa.string())
    iso = pc.binary_replace_slice(spaced, 10, 11, "T")
    return {**columns, "event_time": pc.binary_join_element_wise(iso, "Z", "")}


def _json_value(column: pa.Array) -> pa.Array:
    is_text = pa.types.is_string(column.type)
    value = pc.binary_join_element_wise('"', column, '"', "") if is_text else column.cast(pa.string())
    return pc.fill_null(value, "null")
