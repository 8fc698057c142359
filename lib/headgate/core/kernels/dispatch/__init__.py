"""Array form of the levels of which dispatches need permits.

The readable form of the same rules is `headgate.core.dispatch`; tests hold the two equal.
"""
