"""The broker's machine once more, by the letter of the specification and millisecond by millisecond.

It shares no code with headgate but the inputs: a frozen deadline is replaced by what remains of it, every timer is
looked for in every producer, and time goes by ones.
"""

from collections import Counter

from headgate.core.protocol.broker import inputs

NAMES = {
    0: "TopicProduceQuotaExceeded",
    1: "ResourceGroupProduceQuotaExceeded",
    2: "ConnectionPendingMessagesBreach",
    3: "MessageBufferSizeBreach",
    4: "BrokerProduceQuotaExceeded",
}
LIMITERS = {0: "topic", 1: "resource_group", 4: "broker"}
OPERATIONS = "pulsar.broker.connection.rate_limit.count{pulsar.connection.rate_limit.operation.name="


class Frozen(int):
    """What remains of a deadline."""


class OneProducer:
    def __init__(self, topic):
        self.topic = topic
        self.state = "N"
        self.marked, self.unmarked, self.quotes, self.ids = {0: 0, 1: 0}, {0: 0, 1: 0}, {}, {}
        self.end = self.reason = None

    @property
    def held(self):
        return [reason for reason in (0, 1) if self.marked[reason] > self.unmarked[reason]]


class Oracle:
    def __init__(self, keys, *, supports, at):
        self.keys, self.now = keys, at
        self.wait = keys["throttleProducerReceiptWaitTimeMillis"]
        self.cooperative = supports and self.wait > 0
        self.producers, self.set, self.cleared = {}, Counter(), Counter()
        self.holds, self.off_since, self.queue, self.issued = set(), None, [], 0
        self.out, self.counts = [], Counter()

    def perform(self, given):
        """What an input emits, or a time to advance to; in the form of `brief`."""
        self.out = []
        at = given if isinstance(given, int) else given.at_ms
        while self.now < at:
            self._timers()
            self.now += 1
        if isinstance(given, int):
            self._timers()
        elif isinstance(getattr(given, "producer", None), int) and not self._knows(given):
            self.out.append(("rejected", self.now, "unknown_producer"))
            self.counts["headgate.input.rejected.count{error=unknown_producer}"] += 1
        else:
            getattr(self, type(given).__name__.lower())(given)
        return self.out

    def reads(self):
        """`on` or `off`, by the states of producers and conditions alone."""
        holding = any(one.state == "P" for one in self.producers.values())
        return "off" if holding or any(self.set[reason] > self.cleared[reason] for reason in range(2, 7)) else "on"

    def open(self, given):
        self.producers.setdefault(given.producer, OneProducer(given.topic))

    def publish(self, given):
        one = self.producers[given.producer]
        slack = self.keys["violation_slack_ms"]
        if one.state == "C" and self.keys["violation_policy"] == "pause" and self.now < one.end - slack:
            self._enter_p(given.producer, "violation", one.reason)

    def mark(self, given):
        one, live = self.producers[given.producer], {}
        for trip in given.trips:
            if trip.ordinal <= one.marked[trip.reason]:
                continue
            was_held = trip.reason in one.held
            one.marked[trip.reason] = trip.ordinal
            if trip.ordinal <= one.unmarked[trip.reason]:
                continue
            live[trip.reason] = one.quotes[trip.reason] = (self.now, trip.buckets)
            if not was_held and given.trigger:
                self._breach(trip.reason, one.topic)
        if not live or one.state == "P":
            return
        pause, reason = self._pause(live)
        floor = self.keys["hard_floor_pause_ms"]
        if one.state == "N" and not self.cooperative:
            self._enter_p(given.producer, "no_support", reason)
        elif 0 < floor < pause:
            self._enter_p(given.producer, "hard_floor", reason)
        elif one.state == "N":
            self._send("start", given.producer, pause, reason)
        elif self.now + pause - one.end >= self.keys["extension_step_ms"] and (
            not self.keys["doubling_extensions"] or pause >= 2 * (one.end - self.now)
        ):
            self._send("extend", given.producer, pause, reason)

    def quote(self, given):
        one = self.producers[given.producer]
        if given.reason in one.held:
            one.quotes[given.reason] = (self.now, given.buckets)

    def receipt(self, given):
        is_open = any(given.request_id in one.ids for one in self.producers.values())
        if self.off_since is not None and is_open and given.request_id not in self.queue:
            self.queue.append(given.request_id)
        elif self.off_since is not None or not is_open:
            outcome = "ignored" if 0 < given.request_id <= self.issued else "unknown"
            self.counts[f"headgate.broker.throttle.receipt.count{{outcome={outcome}}}"] += 1
        else:
            self._read(given.request_id)

    def conditionset(self, given):
        reason = given.reason
        was_active = self.set[reason] > self.cleared[reason]
        self.set[reason] = max(self.set[reason], given.ordinal)
        if was_active or self.set[reason] <= self.cleared[reason]:
            return
        if reason == 2:
            self.counts[OPERATIONS + "throttled}"] += 1
        if reason == 4 and given.producer in self.producers:
            self._breach(4, self.producers[given.producer].topic)
        for id_ in sorted(self.producers) if self.cooperative and reason in (2, 3, 4) else ():
            self._command("notice", id_, 0, reason)
        self._add_hold(f"reason:{reason}", "condition", reason, None)

    def unmark(self, given):
        one = self.producers[given.producer]
        was_held = bool(one.held)
        one.unmarked[given.reason] = max(one.unmarked[given.reason], given.ordinal)
        if was_held and not one.held:
            one.state, one.ids, one.end, one.reason = "N", {}, None, None
            self._remove_hold(f"producer:{given.producer}")

    def conditionclear(self, given):
        reason = given.reason
        was_active = self.set[reason] > self.cleared[reason]
        self.cleared[reason] = max(self.cleared[reason], given.ordinal)
        if was_active and self.set[reason] <= self.cleared[reason]:
            if reason == 2:
                self.counts[OPERATIONS + "unthrottled}"] += 1
            self._remove_hold(f"reason:{reason}")

    def closeproducer(self, given):
        del self.producers[given.producer]
        self._remove_hold(f"producer:{given.producer}")

    def _knows(self, given):
        return isinstance(given, inputs.Open | inputs.ConditionSet) or given.producer in self.producers

    def _timers(self):
        for id_, one in sorted(self.producers.items()):
            if any(due == self.now and not isinstance(due, Frozen) for due in one.ids.values()):
                self._enter_p(id_, "no_receipt", one.reason)
        for id_, one in sorted(self.producers.items()):
            if one.end == self.now:
                pause, reason = self._pause({held: one.quotes[held] for held in one.held}, again=True)
                if 0 < self.keys["hard_floor_pause_ms"] < pause:
                    self._enter_p(id_, "hard_floor", reason)
                else:
                    self._send("extend", id_, pause, reason)

    def _pause(self, limiters, *, again=False):
        if self.keys["pause_mode"] == "second_boundary":
            return 1000 - ((self.now - self.keys["phase_ms"]) % 1000), min(limiters)
        ns = {}
        for reason, (at, buckets) in limiters.items():
            ns[reason] = 0
            for balance, rate in buckets:
                need = max(1, rate // 100) - (balance + rate * (self.now - at) // 1000)
                ns[reason] = max(ns[reason], need * 10**9 // rate if need > 0 else 0)
        longest = max(ns.values())
        reason = min(reason for reason in ns if ns[reason] == longest)
        ms = (longest + 999_999) // 10**6
        return (ms or self.keys["idle_extension_ms"]) if again else max(1, ms), reason

    def _send(self, kind, id_, pause, reason):
        one = self.producers[id_]
        self._command(kind, id_, pause, reason)
        one.state, one.end, one.reason = "W", self.now + pause, reason
        frozen = self.keys["freeze_deadlines"] and self.off_since is not None
        one.ids[self.issued] = Frozen(self.wait) if frozen else self.now + self.wait

    def _command(self, kind, id_, pause, reason):
        self.issued += 1
        self.out.append(("command", self.now, self.issued, id_, reason, pause, kind))
        self.counts[f"headgate.broker.throttle.command.count{{kind={kind},reason={NAMES[reason]}}}"] += 1

    def _enter_p(self, id_, cause, reason):
        one = self.producers[id_]
        one.state, one.ids, one.end, one.reason = "P", {}, None, None
        self.counts[f"headgate.broker.throttle.fallback.count{{cause={cause}}}"] += 1
        self._add_hold(f"producer:{id_}", cause, reason, id_)

    def _read(self, request_id):
        for one in self.producers.values():
            if request_id in one.ids:
                del one.ids[request_id]
                one.state = "W" if one.ids else "C"
                self.counts["headgate.broker.throttle.receipt.count{outcome=in_time}"] += 1
                return
        self.counts["headgate.broker.throttle.receipt.count{outcome=ignored}"] += 1

    def _add_hold(self, hold, cause, reason, id_):
        self.holds.add(hold)
        if self.off_since is not None:
            return
        self.off_since = self.now
        self.out.append(("pause", self.now, cause, reason, id_))
        self.counts[OPERATIONS + "paused}"] += 1
        self._replace_deadlines(lambda due: Frozen(due - self.now) if due > self.now else due)

    def _remove_hold(self, hold):
        if hold not in self.holds:
            return
        self.holds.remove(hold)
        if self.holds:
            return
        self.out.append(("resume", self.now, self.now - self.off_since))
        self.counts[OPERATIONS + "resumed}"] += 1
        self.counts["headgate.broker.reads.off.duration{}"] += self.now - self.off_since
        self.off_since = None
        self._replace_deadlines(lambda due: self.now + due if isinstance(due, Frozen) else due)
        queued, self.queue = self.queue, []
        for request_id in queued:
            self._read(request_id)

    def _replace_deadlines(self, replaced):
        if self.keys["freeze_deadlines"]:
            for one in self.producers.values():
                one.ids = {request_id: replaced(due) for request_id, due in one.ids.items()}

    def _breach(self, reason, topic):
        labels = f"pulsar.publish.rate_limiter={LIMITERS[reason]},pulsar.topic={topic}"
        self.counts[f"pulsar.broker.topic.publish.rate.limit.count{{{labels}}}"] += 1
