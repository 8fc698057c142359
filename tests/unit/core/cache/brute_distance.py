"""The pass of cursor_distance by definition: every entry is scored, over and over (section 10.3)."""

from headgate.core.cache.policies.cursor_distance import CursorDistance


def order(topic, position):
    ends = topic.ends.highest
    return position[1] + sum(number + 1 for ledger, number in ends.items() if ledger < position[0])


def next_read(topic, entry, now_us, settings):
    tracked = [cursor for cursor in topic.cursors.by_name.values() if cursor.read is not None]
    behind = sorted(
        (cursor for cursor in tracked if cursor.read <= entry.position),
        key=lambda cursor: ([-part for part in cursor.read], cursor.registration),
    )
    best = float("inf") if tracked else settings.grace_us
    for cursor in behind[: settings.distance_look]:
        silence = now_us - cursor.last_wake_us
        wait = silence if silence > 4 * cursor.interval_us else max(0, cursor.interval_us - silence)
        distance = order(topic, entry.position) - order(topic, cursor.read)
        best = min(best, wait + distance * cursor.interval_us // settings.distance_batch)
    return min(best, topic.replay_delay_us) if entry.position in topic.marks.counts else best


class CheckedDistance(CursorDistance):
    """Says before each pass what has to leave, and compares."""

    def size_pass(self, now_us):
        goal = int(float(self._limit.max_bytes) * self._settings.distance_target)
        left = [entry for topic in self._topics.values() for entry in topic.entries]
        current = sum(entry.size for entry in left)
        need, largest = current - goal, max(entry.size for entry in left)
        positions = sum(len(set(topic.cursors.order())) for topic in self._topics.values())
        victims = []
        while current > goal:
            scores = {entry: next_read(entry.topic, entry, now_us, self._settings) for entry in left}
            victim = max(left, key=lambda entry: (scores[entry], -entry.topic.place, entry.position))
            left.remove(victim)
            current -= victim.size
            victims.append((victim.topic.name, *victim.position))
        visits, passes, before = self.work.visits, self.work.size_passes, len(self._store.removed)

        super().size_pass(now_us)

        removed = self._store.removed[before:]
        assert victims == [one[:3] for one in removed]
        assert self.work.size_passes == passes + 1
        assert self.work.visits - visits <= 2 * (positions + len(self._topics)) + len(victims)
        freed = need + goal - self._limit.current_bytes
        assert need <= freed < need + largest
