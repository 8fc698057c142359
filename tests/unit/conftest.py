"""Settings of all tests without Spark."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # how fast an example runs is no test
settings.load_profile("unhurried")
