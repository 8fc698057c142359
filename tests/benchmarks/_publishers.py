"""Publishes messages a second to topics of a Pulsar cluster, as lines of standard input say: TOPIC RATE; 0 ends one.

Each topic has a client and a thread of its own. At the end of the input it prints JSON: by topic, when each message was
sent and how long it took until the broker had it, both in s.
"""

import json
import os
import sys
import threading
import time

import pulsar

SIZE_BYTES = 200


class Publisher:
    """One topic. A message that is due while the queue is full is sent late, at most half a second's worth of them."""

    def __init__(self, url: str, topic: str, pending: int) -> None:
        self._rate, self._changed = 0.0, threading.Event()
        self.took: list[tuple[float, float]] = []
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self._client = pulsar.Client(url, logger=logger)
        self._producer = self._client.create_producer(
            topic,
            batching_enabled=False,
            block_if_queue_full=True,
            max_pending_messages=pending,
            send_timeout_millis=0,
        )
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def set(self, rate: float) -> None:
        self._rate = rate
        self._changed.set()

    def stop(self) -> None:
        self._stopped = True
        self._changed.set()
        self._thread.join(5)

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stopped:
            rate = self._rate
            if not rate:
                self._changed.wait()
                self._changed.clear()
                due_s = time.monotonic()
                continue
            sent_s = time.time()
            self._producer.send_async(
                b"x" * SIZE_BYTES, lambda *_, sent_s=sent_s: self.took.append((sent_s, time.time() - sent_s))
            )
            due_s = max(due_s + 1 / rate, time.monotonic() - 0.5)
            time.sleep(max(due_s - time.monotonic(), 0))


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Pulsar's client writes errors to standard output, whichever logger it has
    publishers: dict[str, Publisher] = {}
    for line in sys.stdin:
        topic, rate = line.split()
        if topic not in publishers:
            publishers[topic] = Publisher(sys.argv[1], topic, int(sys.argv[2]))
        publishers[topic].set(float(rate))
    for publisher in publishers.values():
        publisher.stop()
    print(json.dumps({topic: publisher.took for topic, publisher in publishers.items()}), file=out, flush=True)


if __name__ == "__main__":
    main()
