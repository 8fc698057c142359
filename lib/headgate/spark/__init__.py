"""Everything that touches Spark: session, schemas, sources, operators, sinks. The core does not import it."""
