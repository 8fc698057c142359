"""Arrow tables as bytes: the one form in which rows cross into and out of Python, and in which state is kept.

A block is an Arrow IPC stream; several may stand one behind the other. What the schema's metadata says travels with it.
"""

from collections.abc import Iterator

import pyarrow as pa

ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""Blocks are small pieces: to hand one to a pool of threads takes longer than to read it, most of all on busy cores."""


IN_FLIGHT = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""What a block saves in Java's copies of it is several times what it costs to compress."""


def encode(table: pa.Table) -> bytes:
    """The table as one block. An empty table keeps its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=IN_FLIGHT) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode(block: bytes) -> pa.Table:
    """The one table of a block; its columns are views of `block`."""
    with pa.ipc.open_stream(block, options=ONE_THREAD) as reader:
        return reader.read_all()


def encode_all(tables: list[pa.Table]) -> bytes:
    """Several tables, each a block, one behind the other. Compressed: Spark pickles state, byte by byte."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
    return bytes(sink.getvalue())


def decode_all(blocks: bytes) -> Iterator[pa.Table]:
    """The tables of `encode_all`, in order."""
    source = pa.BufferReader(blocks)
    while source.tell() < source.size():
        with pa.ipc.open_stream(source, options=ONE_THREAD) as reader:
            yield reader.read_all()


def gather(schema: pa.Schema, blocks: list[bytes]) -> pa.Table:
    """The rows of all blocks as one table of `schema`; a column that a block leaves out is null in its rows."""
    tables = [schema.empty_table(), *map(decode, blocks)]
    return pa.concat_tables(tables, promote_options="default")
