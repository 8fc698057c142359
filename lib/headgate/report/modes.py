"""The two meanings of traffic, in the words of every screen and report."""

_MEANINGS = {
    "offered": "rows are what clients want to send; while a limit holds a producer its publishes wait, and those that "
    "wait longer than {timeout} s fail",
    "admitted": "rows are what brokers let in; throttled are the publishes after which these limits would have stopped "
    "reading from the producer, and none waits or fails",
}


def mode_line(traffic: str, send_timeout_ms: int) -> str:
    """Which meaning was taken, and what it means. traffic, send_timeout_ms: of [operator] in headgate.toml."""
    return f"traffic = {traffic}: {_MEANINGS[traffic].format(timeout=f'{send_timeout_ms / 1000:g}')}"
