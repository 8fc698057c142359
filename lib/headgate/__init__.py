"""Quotas and throttling for multi-tenant messaging, on Spark Structured Streaming."""

__version__ = "0.1.0"
