"""Array form of the entry cache: policies pip430, lru, fifo, sieve, cursor_distance and belady over arrays.

The readable form of the same rules, which says what they are, is `headgate.core.cache`; tests hold the two equal.
"""
