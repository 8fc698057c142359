"""The client machine as the text has it, one ms after the other: slow, without heaps, sums or lazy ends."""

from types import SimpleNamespace as Record

from headgate.core.protocol.settings import ClientSettings, FailMode, ZeroPause


class NaiveClient:
    """Takes the inputs of ClientMachine and returns the texts of what they emit (`client_steps.said`)."""

    def __init__(self, config):
        self.settings = ClientSettings.of(config)
        self.now = 0
        self.link_up = True
        self.seen = set()
        self.producers = {
            number: Record(
                number=number,
                is_open=True,
                window=None,
                notice=None,
                last=None,
                theta=0,
                pending=[],
                drain=None,
                writes=0,
            )
            for number in sorted(self.settings.producers)
        }

    def perform(self, name, *arguments, at_ms):
        """All ms before `at_ms` pass; then the input, at the clock."""
        emitted = []
        while self.now < at_ms:
            emitted += self.timers()
            self.pass_ms()
        return emitted + getattr(self, name)(*arguments)

    def pass_ms(self):
        self.now += 1
        for producer in self.producers.values():
            producer.theta += producer.window is not None or producer.notice is not None
            if producer.window is not None and producer.window[0] <= self.now:
                producer.window = None

    def timers(self):
        emitted = []
        for producer in self.producers.values():
            emitted += self.timeouts(producer)
        for producer in self.producers.values():
            if producer.drain == self.now:
                emitted += self.drained(producer)
        return emitted

    def timeouts(self, producer):
        limit = self.settings.send_timeout_ms
        due = [message for message in producer.pending if limit and message.sent + limit <= self.now]
        if due and self.settings.fail_mode is FailMode.HEAD_ALL:
            oldest = producer.pending[0]
            return [
                self.failed(producer, message, self.verdict(producer, oldest)) for message in list(producer.pending)
            ]
        return [self.failed(producer, message, self.verdict(producer, message)) for message in due]

    def verdict(self, producer, message):
        limit = self.settings.send_timeout_ms
        blamed = min(producer.theta - message.theta0, limit)
        error = "SendTimeoutError"
        if 100 * blamed > self.settings.throttled_percent * limit:
            error = "ProducerThrottledError"
        return f"{error} by {self.reason(producer)}: {blamed}/{limit}, left {self.left(producer)}"

    def failed(self, producer, message, why):
        producer.pending.remove(message)
        return f"{self.now} fail {producer.number} {message.id} {why}"

    def written(self, producer, message):
        producer.writes += 1
        message.write, message.blocked = producer.writes, False
        return f"{self.now} write {producer.number} {message.id}"

    def drained(self, producer):
        return [self.written(producer, message) for message in producer.pending if message.blocked]

    def left(self, producer):
        return 0 if producer.window is None else producer.window[0] - self.now

    def reason(self, producer):
        if producer.window is not None:
            return producer.window[1]
        return producer.last if producer.notice is None else producer.notice[0]

    def advance(self):
        return self.timers()

    def throttle(self, command):
        if not self.settings.enabled:
            return []
        if not 1 <= command.request_id < 2**63:
            return [f"{self.now} rejected bad_request_id"]
        if not 0 <= command.pause_ms < 2**63:
            return [f"{self.now} rejected bad_pause"]
        if not self.link_up:
            return []
        producer = self.producers.get(command.producer_id)
        if command.request_id not in self.seen and producer is not None and producer.is_open:
            self.obey(producer, command, command.reason if command.reason in range(5) else 99)
        self.seen.add(command.request_id)
        return [f"{self.now} receipt {command.request_id}"]

    def obey(self, producer, command, reason):
        is_row = command.issued_at_ms is not None
        if command.pause_ms == 0:
            if is_row and command.issued_at_ms + self.settings.notice_ttl_ms < self.now:
                return
            producer.last = reason
            if self.settings.zero_pause is ZeroPause.OPEN_NOTICE:
                producer.notice = (reason, producer.writes)
            return
        end = self.now + command.pause_ms
        if is_row:
            end = command.issued_at_ms + command.pause_ms - self.settings.clock_skew_ms
        if end <= self.now:
            return
        windows = [(end, reason), *([producer.window] if producer.window else [])]
        joined = max(windows, key=lambda window: (window[0], -window[1]))
        if joined != producer.window:
            producer.window, producer.last = joined, reason
            producer.drain = end + self.settings.drain_delay_ms

    def send(self, number, message_id):
        producer, timeout = self.producers.get(number), self.settings.send_timeout_ms
        if producer is None:
            return [f"{self.now} rejected unknown_producer"]
        fail = f"{self.now} fail {number} {message_id}"
        if not producer.is_open:
            return [f"{fail} ProducerClosedError"]
        if any(message.id == message_id for message in producer.pending):
            return [f"{self.now} rejected duplicate_message"]
        if self.settings.max_pending and len(producer.pending) >= self.settings.max_pending:
            return [f"{fail} ProducerQueueFullError"]
        left = self.left(producer)
        if producer.window and timeout and timeout < left:
            return [f"{fail} ProducerThrottledError by {producer.window[1]}: 0/{timeout}, left {left} at once"]
        held = producer.window is not None
        drained = [] if held or not self.link_up else self.drained(producer)
        message = Record(id=message_id, sent=self.now, theta0=producer.theta, write=0, blocked=held)
        producer.pending.append(message)
        return [] if held or not self.link_up else [*drained, self.written(producer, message)]

    def answered(self, number, message_id):
        producer = self.producers.get(number)
        pending = [] if producer is None else producer.pending
        message = next((one for one in pending if one.id == message_id and one.write), None)
        return producer, message

    def ack(self, number, message_id):
        producer, message = self.answered(number, message_id)
        if message is None:
            return []
        producer.pending.remove(message)
        if producer.notice is not None and message.write > producer.notice[1]:
            producer.notice = None
        return [f"{self.now} done {number} {message_id}"]

    def nack(self, number, message_id):
        producer, message = self.answered(number, message_id)
        return [] if message is None else [self.failed(producer, message, "SendRejectedError")]

    def disconnect(self):
        if self.link_up:
            self.link_up = False
            for producer in self.producers.values():
                self.let_go(producer)
        return []

    def let_go(self, producer):
        producer.window = producer.notice = None
        for message in producer.pending:
            message.blocked = False

    def reconnect(self):
        if self.link_up:
            return []
        self.link_up, self.seen = True, set()
        return [self.written(producer, one) for producer in self.producers.values() for one in producer.pending]

    def close(self, number):
        producer = self.producers.get(number)
        if producer is None or not producer.is_open:
            return []
        self.let_go(producer)
        producer.is_open = False
        return [self.failed(producer, message, "ProducerClosedError") for message in list(producer.pending)]

    def probe(self, number):
        producer = self.producers.get(number)
        if producer is None or not producer.is_open:
            return [f"{self.now} rejected unknown_producer"]
        held = "free" if producer.window is None else f"until {producer.window[0]} by {producer.window[1]}"
        blocked = sum(message.blocked for message in producer.pending)
        return [
            f"{self.now} probe {number} {held} blocked {blocked} pending {len(producer.pending)} theta {producer.theta}"
        ]
