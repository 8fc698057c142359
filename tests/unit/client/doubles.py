"""A clock that stands, and a library that says and does what it is told: what no broker does when it is wanted."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from zlib import crc32

from headgate.client import ClientSettings, PartitionedSettings, RateLimitedProducer

SOON_S = 20
"""What should happen has happened long before, on a busy machine, too."""


class StandingClock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.ms = 0
        self.conditions = set()

    def now_ms(self):
        return self.ms

    def wait(self, changed, until_ms):
        self.conditions.add(changed)
        if until_ms is None or self.ms < until_ms:
            changed.wait()

    def ring(self, ms):
        """Move, and wake who waits for a time."""
        self.ms = ms
        for changed in list(self.conditions):
            with changed:
                changed.notify_all()


class ToldLibrary:
    """Keeps the writes, (producer id, payload), and acknowledges when it is told to, or at once."""

    def __init__(self, *, acknowledges=False, partitions=1, options=None):
        self.options = options
        self.acknowledges = acknowledges
        self.partitions = partitions
        self.writes = []
        self.calls = []
        self.is_flushed = threading.Event()
        self.on_write = lambda _payload: None
        self._completed = {}

    @property
    def written(self):
        return [payload for _, payload in self.writes]

    def write(self, producer_id, payload, options, completed):
        self.writes.append((producer_id, payload))
        self._completed[payload] = completed
        self.on_write(payload)
        if self.acknowledges:
            completed(f"{payload} stored {options or ''}".strip(), None)

    def ack(self, *payloads):
        for payload in payloads:
            self._completed[payload](f"{payload} stored", None)

    def nack(self, payload, error):
        self._completed[payload](None, error)

    def partition_of(self, options):
        return crc32(options["key"]) % self.partitions if "key" in options else None

    def flush(self, _timeout_s):
        self.calls.append("flush")
        self.is_flushed.set()

    def close(self, _timeout_s):
        self.calls.append("close")


class Scene:
    """A producer over a told library, at a standing clock; `receipts` as they went out."""

    def __init__(self, library, connection=None, on_throttle=None, on_resume=None, max_pending_bytes=0, **settings):
        self.library = library
        self.clock = StandingClock()
        self.receipts = []
        chosen = PartitionedSettings if "partitions" in settings else ClientSettings
        defaults = {} if chosen is PartitionedSettings else {"producers": {0: "t"}}
        self.producer = RateLimitedProducer(
            library,
            chosen.of({**defaults, **settings}),
            receipts=self.receipts.append,
            connection=connection,
            on_throttle=on_throttle,
            on_resume=on_resume,
            max_pending_bytes=max_pending_bytes,
            clock=self.clock,
        )

    def at(self, ms):
        """The time is `ms`, and what is due by then happens, before this returns."""
        self.clock.ms = ms
        self.producer.advance()
        self.producer._outbox.carry_out()

    def error(self, future):
        """With what the future failed."""
        return future.exception(SOON_S)


@contextmanager
def scene_of(library=None, connection=None, **options):
    """A scene whose producer is closed in the end, without waiting for what is pending."""
    scene = Scene(library or ToldLibrary(), connection, **options)
    try:
        yield scene
    finally:
        scene.producer.close(0)


@contextmanager
def elsewhere():
    """What calls a function in another thread, and gives the future of the call."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


class Gate:
    """A place where a thread stays until it is let go."""

    def __init__(self):
        self._reached = threading.Event()
        self._open = threading.Event()

    def stay(self):
        self._reached.set()
        assert self._open.wait(SOON_S)

    def wait_reached(self):
        assert self._reached.wait(SOON_S)

    def let_go(self):
        self._open.set()
