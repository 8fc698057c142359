"""Traffic of the demo comes as if it came now."""

import json
from datetime import datetime
from threading import Event

from headgate.demo.traffic import LEAD_S, feed

START_S = 1_767_603_600


class Clock(Event):
    """Waiting lets time pass at once; after `rounds_s` it is over."""

    def __init__(self, rounds_s):
        super().__init__()
        self.now_s, self._end_s = float(START_S), START_S + rounds_s

    def wait(self, timeout=None):
        self.now_s += timeout
        if self.now_s > self._end_s:
            self.set()
        return self.is_set()


def test_rows_are_there_once_they_have_happened_and_rounds_follow_each_other(tmp_path):
    folder, clock = tmp_path / "traffic", Clock(LEAD_S + 120 + 3)
    feed(folder, clock, lambda: clock.now_s)
    files = sorted(folder.iterdir())
    times = [_times(path) for path in files]

    assert 120 < len(files) < 240
    assert times == sorted(times)
    assert (START_S + LEAD_S, START_S + LEAD_S + 120) == (int(times[0][0]), round(times[119][-1]))
    assert 120 + LEAD_S <= times[120][0] - START_S <= times[-1][-1] - START_S <= 120 + LEAD_S + 3
    assert files == sorted(files, key=lambda path: path.stat().st_mtime_ns)


def _times(path):
    return [datetime.fromisoformat(json.loads(row)["event_time"]).timestamp() for row in path.read_text().splitlines()]
