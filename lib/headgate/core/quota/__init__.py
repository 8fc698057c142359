"""Resource groups: a quota for the whole cluster, shared out among brokers by the same pure functions everywhere."""
