"""The page of `headgate serve` over 10,000 topics: first paint in a real Chromium, the server's memory, idle polling.

    python tests/benchmarks/page.py [--topics 10000] [--seconds 300] [--marks 1000000]

Every topic has a row in topic_usage for each second; one in ten is held, and marks are spread over them. First paint is
what the browser says of it (performance API), of a view that the server makes for the first time, and once more of one
that it has kept. Memory is the most that the server ever had (VmHWM). Polling: requests with an If-None-Match by
--viewers connections, answered 304.
"""

import http.client
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lib")]

from _bench import Results, high_water_mb, parser  # noqa: E402

from headgate.arrow.topic_names import named_rows  # noqa: E402
from headgate.throttle.schemas import MARKS  # noqa: E402
from integration.browser import chromium  # noqa: E402
from page_outputs import START_US, many_topics  # noqa: E402
from unit.service.test_serve import service  # noqa: E402

VIEWS = {
    "Now": "/now",
    "Topics": "/topics",
    "Topic": "/topics/persistent/t10/ns/topic-00010",
    "Tenants": "/tenants",
    "Tenant": "/tenants/t10",
    "Connections": "/connections",
}
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
_BLOCK = 1_000_000
_POLL_S = 5


def write_marks(folder: Path, marks: int, topics: int, seconds: int) -> None:
    """Evenly over time; in files of a million."""
    for begin in range(0, marks, _BLOCK):
        numbers = range(begin, min(begin + _BLOCK, marks))
        at_us = [START_US + number * seconds * 1_000_000 // marks for number in numbers]
        names = [f"persistent://t{n * 10 % topics % 50}/ns/topic-{n * 10 % topics:05}" for n in numbers]
        columns: dict[str, Any] = {name: pa.nulls(len(names), MARKS.field(name).type) for name in MARKS.names}
        columns |= {"at_ns": pa.array([one * 1000 for one in at_us]), "event_time": pa.array(at_us), "topic": names}
        columns |= {"limiter": names} | {
            name: pa.repeat(value, len(names))
            for name, value in (("broker", "b1"), ("scope", "topic"), ("action", "mark"), ("type", "TopicPublishRate"))
        }
        table = pa.table(columns).cast(MARKS)
        write_deltalake(f"{folder}/marks", named_rows(table), mode="append")


def polls_per_s(address: str, viewers: int) -> float:
    def poll(_: int) -> int:
        connection = http.client.HTTPConnection(address)
        connection.request("GET", "/now")
        answer = connection.getresponse()
        answer.read()
        etag, count, end = answer.getheader("ETag") or "", 0, time.monotonic() + _POLL_S
        while time.monotonic() < end:
            connection.request("GET", "/now", headers={"If-None-Match": etag})
            again = connection.getresponse()
            again.read()
            assert again.status == 304, again.status
            count += 1
        connection.close()
        return count

    with ThreadPoolExecutor(viewers) as pool:
        return sum(pool.map(poll, range(viewers))) / _POLL_S


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--topics", type=int, default=10_000, metavar="N")
    options.add_argument("--seconds", type=int, default=300, metavar="N")
    options.add_argument("--marks", type=int, default=1_000_000, metavar="N")
    options.add_argument("--viewers", type=int, default=20, metavar="N")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place, Results("page", "First paint of the page") as results:
        folder = many_topics(Path(place), given.topics, given.seconds)
        write_marks(folder, given.marks, given.topics, given.seconds)
        with service(folder) as one, chromium() as browser:
            context = browser.new_context(bypass_csp=True)
            page = context.new_page()
            for name, path in VIEWS.items():
                paints = []
                for _ in range(2):
                    page.goto(one.url + path)
                    page.wait_for_function(f"{_PAINT} >= 0")
                    paints.append(page.evaluate(_PAINT))
                results.measure(f"{name}, made", "ms", paints[:1])
                results.measure(f"{name}, kept", "ms", paints[1:])
            context.close()
            results.measure("polls answered 304", "/s", [polls_per_s(one.address, given.viewers)])
            results.measure("server, most memory", "MB", [high_water_mb(one.process.pid)])


if __name__ == "__main__":
    main()
