"""The throttle protocol: when a broker asks a client to stop, or stops reading, and what the client does (PIP-385)."""
