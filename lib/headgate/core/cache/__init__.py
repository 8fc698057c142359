"""The entry caches of brokers in event time (PIP-430, entry-cache)."""
