"""What decides which entries are cached: one module per policy or family (entry-cache 10)."""
