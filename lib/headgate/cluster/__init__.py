"""Running clusters: their counters in, limits out (clusters)."""
