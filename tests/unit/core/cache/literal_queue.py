"""The removal queue as section 6 tells it, node by node: the oracle of the closed form."""

from collections import deque

from headgate.core.cache.removal_queue import Pass


class LiteralQueue:
    def __init__(self, max_requeue, *, extend_accessed):
        self.max_requeue = max_requeue
        self.extend_accessed = extend_accessed
        self.nodes = deque()

    def append(self, entry):
        self.nodes.append(entry)

    def discard(self, entry):
        self.nodes.remove(entry)

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self):
        return len(self.nodes)

    def head(self):
        return self.nodes[0] if self.nodes else None

    def time_pass(self, now_us, cutoff_us):
        done = Pass()
        while self.nodes and self.nodes[0].ts_us < cutoff_us:
            done.visits += 1
            self.judge(now_us, done)
        return done

    def size_pass(self, now_us, need_bytes):
        done = Pass()
        while self.nodes:
            done.visits += 1
            if sum(entry.size for entry in done.removed) >= need_bytes:
                break
            self.judge(now_us, done)
        return done

    def judge(self, now_us, done):
        entry = self.nodes.popleft()
        is_expected = entry.handler is not None and entry.handler.count >= 1
        if (self.extend_accessed and entry.accessed) or (is_expected and entry.requeues < self.max_requeue):
            entry.ts_us = now_us
            entry.accessed = False
            entry.requeues += 1
            done.requeues += 1
            self.nodes.append(entry)
        else:
            done.removed.append(entry)
