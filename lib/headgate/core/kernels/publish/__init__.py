"""Array form of the limiters that publishes of one domain charge: topics, the broker, groups.

The readable form of the same rules is `headgate.core.publish`; tests hold the two equal.
"""
