"""Array form of the entry cache: policies pip430, lru, fifo, sieve and cursor_distance over arrays (entry-cache).

The readable form of the same rules, which says what they are, is `headgate.core.cache`; tests hold the two equal.
"""
