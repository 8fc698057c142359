"""Everything that touches Spark: session, sources, parser, operator, sink, queries. The core does not import it."""
