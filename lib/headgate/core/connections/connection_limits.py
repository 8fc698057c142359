"""Limits of the conditions that hold a connection's reads (rate-limiters 10, 11)."""

from dataclasses import dataclass

from headgate.core.numbers import at_least, flag, int64, sat
from headgate.errors import InvalidArgument

MEBIBYTE = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionLimits:
    """Limits that are off never mark; the defaults are Pulsar's where it has one. Source: rate-limiters 10, 11

    Arguments, each with its range:
        max_pending_publish_requests: requests in flight per connection; 0 or below: off.
        max_publish_buffer_mib: MiB in flight over all IO threads; 0 or below: off.
        io_threads: number of IO threads, >= 1, required when the buffer is limited.
        pause_if_unwritable: whether the outbound buffer and the cooldown hold reads.
        cooldown_ms: after the buffer became writable; 0 or below: no cooldown.
        cooldown_permits, cooldown_period_ms: commands per period during a cooldown, each >= 1 where there is one.

    Raises InvalidArgument for values out of range.
    """

    max_pending_publish_requests: int = 1000
    max_publish_buffer_mib: int = -1
    io_threads: int | None = None
    pause_if_unwritable: bool = False
    cooldown_ms: int = 5000
    cooldown_permits: int = 5
    cooldown_period_ms: int = 10

    def __post_init__(self) -> None:
        int64(self.max_pending_publish_requests, "max_pending_publish_requests")
        if int64(self.max_publish_buffer_mib, "max_publish_buffer_mib") > 0:
            if self.io_threads is None:
                raise InvalidArgument("io_threads: missing; a publish buffer limit is divided among the IO threads")
            at_least(1, self.io_threads, "io_threads")
        flag(self.pause_if_unwritable, "pause_if_unwritable")
        int64(self.cooldown_ms, "cooldown_ms")
        int64(self.cooldown_permits, "cooldown_permits")
        int64(self.cooldown_period_ms, "cooldown_period_ms")
        if self.cools_down:
            at_least(1, self.cooldown_permits, "cooldown_permits")
            at_least(1, self.cooldown_period_ms, "cooldown_period_ms")

    @property
    def limits_requests(self) -> bool:
        """Whether requests in flight hold a connection. rate-limiters 10.1"""
        return self.max_pending_publish_requests > 0

    @property
    def cools_down(self) -> bool:
        """Whether a cooldown follows when a connection becomes writable."""
        return self.pause_if_unwritable and self.cooldown_ms > 0

    @property
    def cooldown_window(self) -> tuple[int, int]:
        """So many commands during a cooldown in a period of so many ms."""
        return self.cooldown_permits, self.cooldown_period_ms

    @property
    def thread_limit_bytes(self) -> int | None:
        """Bytes in flight per IO thread above which its connections are held, None when off. rate-limiters 10.2"""
        if self.max_publish_buffer_mib <= 0 or self.io_threads is None:
            return None
        return sat(self.max_publish_buffer_mib * MEBIBYTE // self.io_threads)
