"""Rows in: raw columns or lines, from any source, to good rows and dead letters. Pure functions over Arrow batches."""
