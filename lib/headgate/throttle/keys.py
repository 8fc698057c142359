"""Names of limiters inside a domain's state.

A topic's limiter has the topic's full name; shared ones begin with @, which no topic does.
"""

BROKER_KEY = "@broker"
_GROUP_PREFIX = "@group/"


def group_key(group: str) -> str:
    return f"{_GROUP_PREFIX}{group}"
