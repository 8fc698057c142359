"""The libraries' adapters, as far as that needs no broker; the rest is in tests/integration/test_client.py."""

import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue

import confluent_kafka
import pulsar
import pytest

from headgate.client import ClientSettings, PartitionedSettings
from headgate.client.kafka_library import KafkaLibrary, own_options
from headgate.client.pulsar_library import PulsarLibrary, java_hash
from headgate.errors import InvalidArgument
from unit.client.doubles import SOON_S, Gate, elsewhere

LIB = Path(__file__).parents[3] / "lib"
SINGLE = ClientSettings.of({"producers": {0: "t"}})
NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


@pytest.mark.parametrize(
    ("module", "missing", "package"),
    [("pulsar_library", "pulsar", "pulsar-client"), ("kafka_library", "confluent_kafka", "confluent-kafka")],
)
def test_a_library_that_is_not_installed_names_the_extra(module, missing, package):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import headgate.client\n"
        f"try:\n    import headgate.client.{module}\n"
        "except headgate.client.MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=LIB, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{package} is not installed"), done.stderr
    assert "pip install 'headgate[client]'" in done.stdout


def test_the_wrapper_needs_neither_library():
    program = "import sys, headgate.client; print({'pulsar', 'confluent_kafka'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], cwd=LIB, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.parametrize(
    ("key", "code"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", 0), ("ключ", 33309882), ("😀 key", 927976994)],
)
def test_the_hash_of_a_pulsar_key_is_that_of_java_without_its_sign(key, code):
    """The hash of "polygenelubricants" is -2^31."""
    assert java_hash(key) == code


@pytest.mark.parametrize("option", ["send_timeout_millis", "max_pending_messages"])
def test_options_of_pulsar_that_the_wrapper_stands_for_are_refused(option):
    with pytest.raises(InvalidArgument, match=f"{option}: got 1000, allowed is 0"):
        PulsarLibrary.open(None, SINGLE, **{option: 1000})


def test_producers_of_pulsar_that_are_not_those_of_the_settings_are_refused():
    with pytest.raises(InvalidArgument, match=r"got ids \[0\], allowed are those of the settings, \[0, 1\]"):
        PulsarLibrary({0: pulsar.Producer()}, PartitionedSettings.of({"partitions": 2}))


class ClosedProducer:
    """A producer of Pulsar that knows whether it was closed."""

    is_closed = False

    def close(self):
        self.is_closed = True


class TwoProducers:
    """A client of Pulsar for whose third producer there is no broker."""

    def __init__(self):
        self.made = []

    def create_producer(self, topic, **_):
        if len(self.made) == 2:
            raise pulsar.Timeout(topic)
        self.made.append(ClosedProducer())
        return self.made[-1]


def test_producers_of_pulsar_that_were_made_are_closed_if_another_cannot_be():
    client = TwoProducers()
    with pytest.raises(pulsar.Timeout, match="t-partition-2"):
        PulsarLibrary.open(client, PartitionedSettings.of({"topic": "t", "partitions": 3}))
    assert [producer.is_closed for producer in client.made] == [True, True]


class AwayProducer:
    """A producer of Pulsar whose broker is away until it is let go: its flush waits for that."""

    def __init__(self):
        self.gate = Gate()
        self.flushed = SimpleQueue()

    def flush(self):
        self.flushed.put(threading.current_thread())
        self.gate.stay()


def test_flushes_of_pulsar_have_one_thread_for_each_producer_that_waits_for_its_broker():
    away = AwayProducer()
    library = PulsarLibrary({0: away}, SINGLE)
    library.flush(0)
    away.gate.wait_reached()
    for _ in range(3):
        library.flush(0.01)
    assert away.flushed.qsize() == 1
    away.gate.let_go()
    library.flush(SOON_S)
    assert away.flushed.qsize() == 2, "what came in the meantime is flushed, too"


@pytest.mark.parametrize(
    "option",
    ["message.timeout.ms", "delivery.timeout.ms", "queue.buffering.max.messages", "queue.buffering.max.kbytes"],
)
def test_options_of_kafka_that_the_wrapper_stands_for_are_refused(option):
    with pytest.raises(InvalidArgument, match=f"{option}: got 1000, allowed is"):
        KafkaLibrary.open({**NOWHERE, option: 1000}, SINGLE)


@pytest.mark.parametrize("option", ["linger.ms", "queue.buffering.max.ms"])
def test_a_batch_of_kafka_that_waits_longer_than_the_send_timeout_is_refused(option):
    settings = ClientSettings.of({"producers": {0: "t"}, "send_timeout_ms": 100})
    with pytest.raises(InvalidArgument, match=f"{option}: got 100, allowed is less than send_timeout_ms, 100"):
        KafkaLibrary.open({**NOWHERE, option: 100}, settings)
    KafkaLibrary.open({**NOWHERE, option: 99}, settings).close(SOON_S)
    KafkaLibrary.open({**NOWHERE, option: 101}, SINGLE).close(SOON_S)


@pytest.mark.parametrize("value", ["abc", None, -1, ""])
def test_a_linger_of_kafka_that_is_no_time_is_refused(value):
    with pytest.raises(
        InvalidArgument, match=re.escape(f"linger.ms: got {value!r}, allowed is a number from 0, in ms")
    ):
        KafkaLibrary.open({**NOWHERE, "linger.ms": value}, SINGLE)


def test_a_send_timeout_above_that_of_kafkas_transactions_is_refused():
    settings = ClientSettings.of({"producers": {0: "t"}, "send_timeout_ms": 20_000})
    config = {**NOWHERE, "transactional.id": "x"}
    with pytest.raises(InvalidArgument, match=r"send_timeout_ms: got 20000, .* transaction.timeout.ms .*, 20000"):
        KafkaLibrary.open({**config, "transaction.timeout.ms": 20_000}, settings)
    KafkaLibrary.open({**config, "transaction.timeout.ms": 20_001}, settings).close(SOON_S)
    KafkaLibrary.open(config, settings).close(SOON_S)


def test_kafka_drops_by_itself_what_has_timed_out():
    settings = ClientSettings.of({"producers": {0: "t"}, "send_timeout_ms": 10})
    library = KafkaLibrary.open({**NOWHERE, "linger.ms": 1}, settings)
    completed = SimpleQueue()
    library.write(0, b"a", {}, lambda *answer: completed.put(answer))
    _, error = completed.get(timeout=SOON_S)
    assert error.args[0].code() == confluent_kafka.KafkaError._MSG_TIMED_OUT
    library.close(SOON_S)


@pytest.mark.parametrize(("send_timeout_ms", "own_ms"), [(0, 0), (1, 2), (2**31 - 2, 2**31 - 1), (2**31 - 1, 0)])
def test_kafka_drops_a_message_once_its_send_timeout_is_over(send_timeout_ms, own_ms):
    settings = ClientSettings.of({"producers": {0: "t"}, "send_timeout_ms": send_timeout_ms})
    assert own_options(settings)["message.timeout.ms"] == own_ms
    KafkaLibrary.open({**NOWHERE, "message.timeout.ms": own_ms}, settings).close(SOON_S)


def test_options_of_a_send_are_those_of_pulsars_producer():
    own = inspect.signature(pulsar.Producer.send_async).parameters.keys() - {"self", "content", "callback"}
    assert PulsarLibrary.options == own


def test_options_of_a_send_are_those_of_kafkas_producer():
    """Its signature is in its documentation alone; `partition` is the wrapper's own."""
    documented = re.search(r"produce\((.*)\)", confluent_kafka.Producer.produce.__doc__)
    own = set(re.findall(r"\[(\w+)\]", documented[1]))
    assert KafkaLibrary.options == own - {"value", "partition", "on_delivery"}


class AwaitedEvent(threading.Event):
    def __init__(self):
        super().__init__()
        self.is_awaited = threading.Event()

    def wait(self, timeout=None):
        self.is_awaited.set()
        return super().wait(timeout)


def test_a_write_waits_for_room_in_kafkas_queue_until_the_library_is_closed():
    producer = confluent_kafka.Producer({**NOWHERE, "queue.buffering.max.messages": 1, "message.timeout.ms": 0})
    library = KafkaLibrary(producer, SINGLE)
    library._room = AwaitedEvent()
    completed = SimpleQueue()
    library.write(0, b"a", {}, lambda *answer: completed.put(answer))
    with elsewhere() as call:
        writing = call(library.write, 0, b"b", {}, lambda *answer: completed.put(answer))
        assert library._room.is_awaited.wait(SOON_S)
        assert not writing.done()
        library.close(SOON_S)
        raised = writing.exception(SOON_S)

    _, error = completed.get(timeout=SOON_S)
    assert error.args[0].code() == confluent_kafka.KafkaError._PURGE_QUEUE
    assert str(raised) == "the producer is closed"
    assert completed.empty()


def test_a_callback_of_kafkas_configuration_that_raises_does_not_end_the_polling(caplog):
    errors = SimpleQueue()

    def fail(error):
        errors.put(error)
        raise RuntimeError(error)

    library = KafkaLibrary.open(
        {**NOWHERE, "error_cb": fail, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}, SINGLE
    )
    for _ in range(2):
        errors.get(timeout=SOON_S)
    library.close(SOON_S)
    assert "a callback of the producer's configuration failed" in caplog.text
