"""The entry cache's job without its engine: rows by broker in order, what is told of each second, state, tables."""
