"""Everything that touches Spark: session, sources, parser, operator, sink, a query's life. The core does not import it."""
