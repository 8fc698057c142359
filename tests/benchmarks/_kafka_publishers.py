"""Publishes to Kafka as a user; lines `TOPIC KB_PER_S` on standard input say what. Messages are of 1,000 bytes."""

import contextlib
import sys
import threading
import time

from confluent_kafka import Producer

SIZE = 1000
rates: dict[str, float] = {}
ended = threading.Event()


def publish(topic: str, user: str, servers: str) -> None:
    """As much as the rate says, and no more than 200 messages at a time; what does not fit then is not sent."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
            "queue.buffering.max.messages": 200,
            "linger.ms": 5,
            "acks": 1,
        }
    )
    due_s = time.monotonic()
    while not ended.wait(max(due_s - time.monotonic(), 0)):
        with contextlib.suppress(BufferError):
            producer.produce(topic, b"x" * SIZE)
        producer.poll(0)
        due_s = max(due_s + 1 / max(rates[topic], 0.001), time.monotonic() - 0.5)
    producer.purge()
    producer.flush(5)


def main() -> None:
    user, servers = sys.argv[1:]
    threads = []
    for line in sys.stdin:
        topic, rate = line.split()
        is_new = topic not in rates
        rates[topic] = float(rate)
        if is_new:
            threads.append(threading.Thread(target=publish, args=(topic, user, servers)))
            threads[-1].start()
    ended.set()
    for thread in threads:
        thread.join(10)


if __name__ == "__main__":
    main()
