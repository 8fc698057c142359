"""An operator's broker.conf loads as it is, and every mistake in the keys that count is named."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conf import BROKER_KEYS, BrokerConf
from headgate.conf.broker_file import read_broker_conf
from headgate.conf.findings import INT64_MAX, INT64_MIN, Findings
from headgate.conf.properties import read_properties

PULSAR_KEYS = (Path(__file__).parent / "pulsar-keys.txt").read_text("utf-8").split()
RATES = [name for name, key in BROKER_KEYS.items() if key.allowed.endswith("0 or below is off")]
FACTORIES = "org.apache.pulsar.broker.service.persistent.DispatchRateLimiterFactory"
INT32 = "an integer from -2147483648 to 2147483647"
FROM_1 = "an integer from 1 to 2147483647"


def read(text: str) -> tuple[BrokerConf, Findings]:
    findings = Findings()
    entries = read_properties(text.encode("iso-8859-1"), "broker.conf", findings)
    return read_broker_conf(entries, "broker.conf", findings), findings


def value_of(text: str, field: str) -> object:
    conf, findings = read(text)
    assert findings.mistakes == []
    return getattr(conf, field)


def mistakes_of(text: str) -> list[str]:
    return read(text)[1].mistakes


def test_defaults_are_those_of_the_specification() -> None:
    expected = {
        **dict.fromkeys(RATES, "0"),
        "dispatchThrottlingRateRelativeToPublishRate": "false",
        "dispatchThrottlingOnBatchMessageEnabled": "false",
        "dispatchThrottlingOnNonBacklogConsumerEnabled": "true",
        "dispatchThrottlingForFilteredEntriesEnabled": "false",
        "dispatchRateLimiterFactoryClassName": f"{FACTORIES}AsyncTokenBucket",
        "statsUpdateFrequencyInSecs": "60",
        "dispatcherMaxReadBatchSize": "100",
        "dispatcherMinReadBatchSize": "1",
        "dispatcherMaxRoundRobinBatchSize": "20",
        "dispatcherMaxReadSizeBytes": "5242880",
        "subscribeRatePeriodPerConsumerInSecond": "30",
        "maxPendingPublishRequestsPerConnection": "1000",
        "maxMessagePublishBufferSizeInMB": "-1",
        "numIOThreads": "",
        "pulsarChannelPauseReceivingRequestsIfUnwritable": "false",
        "pulsarChannelPauseReceivingCooldownMs": "5000",
        "pulsarChannelPauseReceivingCooldownRateLimitPermits": "5",
        "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs": "10",
        "pulsarChannelWriteBufferHighWaterMark": "65536",
        "pulsarChannelWriteBufferLowWaterMark": "32768",
        "namespaceBundleUnloadingTimeoutMs": "60000",
        "throttleProducerReceiptWaitTimeMillis": "100",
        "topicPublisherThrottlingTickTimeMillis": "10",
        "brokerPublisherThrottlingTickTimeMillis": "50",
        "preciseTopicPublishRateLimiterEnable": "false",
        "maxConcurrentUnload": "0",
        "headgateMaxDebtMs": "-1",
        "headgateReleaseQuantum": "0",
        "headgateDispatchReserveThenSettle": "false",
        "headgateClockPolicy": "high_water",
        "headgateClockLeapIntervalMs": "16",
    }
    assert expected == {name: key.default for name, key in BROKER_KEYS.items()}


def test_the_rates_are_those_of_publishes_dispatches_subscribes_and_unloads() -> None:
    scopes = ("", "PerTopic", "PerSubscription", "PerReplicator")
    dispatch = {f"dispatchThrottlingRate{scope}In{unit}" for scope in scopes for unit in ("Msg", "Byte")}
    publish = {
        "brokerPublisherThrottlingMaxMessageRate",
        "brokerPublisherThrottlingMaxByteRate",
        "maxPublishRatePerTopicInMessages",
        "maxPublishRatePerTopicInBytes",
    }
    assert {*publish, *dispatch, "subscribeThrottlingRatePerConsumer", "maxConcurrentUnload"} == set(RATES)


def test_every_field_has_a_key_and_a_file_of_defaults_is_the_default() -> None:
    assert {column.name for column in fields(BrokerConf)} == {key.field for key in BROKER_KEYS.values()}
    conf, findings = read("\n".join(f"{name} = {key.default}" for name, key in BROKER_KEYS.items()))
    assert (BrokerConf(), [], []) == (conf, findings.mistakes, findings.warnings)


def test_an_empty_file_is_the_default() -> None:
    assert BrokerConf() == read("")[0]


def test_blank_values_are_defaults_except_the_factory_which_is_then_classic() -> None:
    conf, findings = read("\n".join(f"{name}=  " for name in BROKER_KEYS))
    assert findings.mistakes == []
    assert BrokerConf(dispatch_implementation="classic") == conf


def test_conf_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        BrokerConf().io_threads = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("maxPublishRatePerTopicInMessages=1000", "topic_publish_rate_messages_per_s", 1000),
        ("maxPublishRatePerTopicInMessages : \t +007 ", "topic_publish_rate_messages_per_s", 7),
        ("maxPublishRatePerTopicInBytes 10\\\n  24", "topic_publish_rate_bytes_per_s", 1024),
        ("max\\u0050ublishRatePerTopicInBytes=5", "topic_publish_rate_bytes_per_s", 5),
        ("dispatchThrottlingRateInMsg=1\ndispatchThrottlingRateInMsg=2", "broker_dispatch_rate_messages_per_s", 2),
        ("dispatchThrottlingRateInByte=-1", "broker_dispatch_rate_bytes_per_s", 0),
        ("dispatchThrottlingOnNonBacklogConsumerEnabled= FALSE ", "dispatch_on_non_backlog_consumer", False),
        ("dispatchThrottlingOnBatchMessageEnabled=True", "dispatch_on_batch_message", True),
        (f"dispatchRateLimiterFactoryClassName={FACTORIES}Classic", "dispatch_implementation", "classic"),
        (f"dispatchRateLimiterFactoryClassName={FACTORIES}AsyncTokenBucket", "dispatch_implementation", "token_bucket"),
        ("maxMessagePublishBufferSizeInMB=64\nnumIOThreads=8", "io_threads", 8),
        ("maxConcurrentUnload=3", "unload_starts_per_s", 3),
        ("headgateMaxDebtMs=-1", "max_debt_ms", None),
        ("headgateMaxDebtMs=0", "max_debt_ms", 0),
        ("headgateReleaseQuantum=0", "release_quantum_producers", None),
        ("headgateReleaseQuantum=1", "release_quantum_producers", 1),
        ("headgateClockPolicy = leap_tolerant", "clock_policy", "leap_tolerant"),
        ("pulsarChannelPauseReceivingCooldownRateLimitPermits=0", "pause_receiving_cooldown_permits", 0),
        ("topicPublisherThrottlingTickTimeMillis=0", "topic_publisher_tick_ms", 0),
    ],
)
def test_values_are_read_in_pulsars_forms(line: str, field: str, expected: object) -> None:
    assert expected == value_of(line, field)


@pytest.mark.parametrize(
    ("key", "value", "allowed", "default"),
    [
        ("maxPublishRatePerTopicInBytes", "1k", f"an integer up to {INT64_MAX}, 0 or below is off", "0"),
        ("maxPublishRatePerTopicInBytes", "1.5", f"an integer up to {INT64_MAX}, 0 or below is off", "0"),
        ("maxPublishRatePerTopicInBytes", "1_000", f"an integer up to {INT64_MAX}, 0 or below is off", "0"),
        ("maxPublishRatePerTopicInBytes", str(INT64_MAX + 1), f"an integer up to {INT64_MAX}, 0 or below is off", "0"),
        ("dispatchThrottlingRateInMsg", str(INT64_MIN - 1), f"an integer up to {INT64_MAX}, 0 or below is off", "0"),
        ("dispatchThrottlingOnBatchMessageEnabled", "yes", "true or false", "false"),
        ("preciseTopicPublishRateLimiterEnable", "1", "true or false", "false"),
        ("dispatcherMaxReadBatchSize", "0", FROM_1, "100"),
        ("statsUpdateFrequencyInSecs", "0", FROM_1, "60"),
        ("maxPendingPublishRequestsPerConnection", "2147483648", INT32, "1000"),
        ("numIOThreads", "0", FROM_1, "not set"),
        ("namespaceBundleUnloadingTimeoutMs", "0", "an integer from 1 to 9223372036854", "60000"),
        ("headgateMaxDebtMs", "-2", "an integer from -1 to 9223372036854", "-1"),
        ("headgateReleaseQuantum", "-1", "an integer from 0 to 2147483647", "0"),
        ("headgateClockPolicy", "HIGH_WATER", "high_water or leap_tolerant", "high_water"),
        ("headgateClockLeapIntervalMs", "0", FROM_1, "16"),
        (
            "dispatchRateLimiterFactoryClassName",
            "com.example.Mine",
            f"{FACTORIES}AsyncTokenBucket or {FACTORIES}Classic",
            f"{FACTORIES}AsyncTokenBucket",
        ),
    ],
)
def test_a_wrong_value_names_line_key_value_range_and_default(key: str, value: str, allowed: str, default: str) -> None:
    expected = [
        (
            f"broker.conf line 2: {key}: got '{value}'; allowed: {allowed}; "
            f"correct it, or remove the line for the default ({default})"
        )
    ]
    assert expected == mistakes_of(f"# first line\n{key}={value}\n")


FEATURE = "pulsarChannelPauseReceivingRequestsIfUnwritable"
COOLDOWN = "pulsarChannelPauseReceivingCooldownMs"
PERMITS = "pulsarChannelPauseReceivingCooldownRateLimitPermits"
PERIOD = "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs"
COOLING = f"an integer from 1 while {FEATURE} is true and {COOLDOWN} is above 0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "maxMessagePublishBufferSizeInMB=64",
            [
                (
                    "broker.conf: numIOThreads: got nothing; allowed: an integer from 1 while "
                    "maxMessagePublishBufferSizeInMB is above 0 (it is 64); "
                    "write the broker's number of IO threads (Pulsar's default is twice its cores)"
                )
            ],
        ),
        ("maxMessagePublishBufferSizeInMB=0", []),
        (f"{PERMITS}=0\n{PERIOD}=-3", []),
        (f"{FEATURE}=true\n{COOLDOWN}=0\n{PERMITS}=0", []),
        (
            f"{FEATURE}=true\n{PERMITS}=0\n{PERIOD}=-3",
            [
                (
                    f"broker.conf line 2: {PERMITS}: got 0; allowed: {COOLING}; "
                    f"correct it, or set {COOLDOWN} to 0 for no cooldown"
                ),
                (
                    f"broker.conf line 3: {PERIOD}: got -3; allowed: {COOLING}; "
                    f"correct it, or set {COOLDOWN} to 0 for no cooldown"
                ),
            ],
        ),
        ("pulsarChannelWriteBufferLowWaterMark=70000", []),
        (
            f"{FEATURE}=true\npulsarChannelWriteBufferLowWaterMark=70000",
            [
                (
                    "broker.conf line 2: pulsarChannelWriteBufferLowWaterMark: got 70000; allowed: up to "
                    f"pulsarChannelWriteBufferHighWaterMark (65536) while {FEATURE} is true; "
                    "lower it, or raise the high mark"
                )
            ],
        ),
    ],
)
def test_keys_that_depend_on_others_are_checked_together(text: str, expected: list[str]) -> None:
    assert expected == mistakes_of(text)


def test_a_key_that_is_wrong_by_itself_is_reported_once() -> None:
    assert len(mistakes_of("maxMessagePublishBufferSizeInMB=64\nnumIOThreads=eight")) == 1


def test_an_unknown_key_of_headgates_own_is_a_mistake_with_the_nearest() -> None:
    known = (
        "headgateClockLeapIntervalMs, headgateClockPolicy, headgateDispatchReserveThenSettle, "
        "headgateMaxDebtMs, headgateReleaseQuantum"
    )
    expected = [
        f"broker.conf line 1: headgateMaxDebt: got an unknown key; allowed: {known}; did you mean headgateMaxDebtMs?"
    ]
    assert expected == mistakes_of("headgateMaxDebt=5")


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("maxPendingPublishdRequestsPerConnection", "maxPendingPublishRequestsPerConnection"),
        ("maxPublishRatePerTopicInMessage", "maxPublishRatePerTopicInMessages"),
        ("numIoThreads", "numIOThreads"),
    ],
)
def test_a_typing_mistake_is_a_warning_that_names_the_nearest_key(key: str, near: str) -> None:
    conf, findings = read(f"{key}=5")
    assert (BrokerConf(), []) == (conf, findings.mistakes)
    assert [
        f"broker.conf line 1: {key}: headgate does not read this key; if {near} is meant, correct it"
    ] == findings.warnings


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("publishThrottlingRatePerTopicInMsgs", "if dispatchThrottlingRatePerTopicInMsg is meant, correct it"),
        ("rateOfAllThatComesInMsgs", "docs/configuration.md has those that it reads"),
    ],
)
def test_an_unknown_key_that_is_a_rate_by_its_name_is_a_warning(key: str, advice: str) -> None:
    _, findings = read(f"{key}=5\n")
    assert [f"broker.conf line 1: {key}: headgate does not read this key; {advice}"] == findings.warnings


def test_a_whole_file_with_hundreds_of_other_keys_loads_without_a_word() -> None:
    others = [*PULSAR_KEYS, *(f"{key}{number}" for key in PULSAR_KEYS for number in range(5))]
    blocks = [f"# What {key} is for\n{key}=${{{key.upper()}}}\n" for key in others]
    blocks.insert(300, "maxPublishRatePerTopicInMessages=250\n")
    conf, findings = read("\n".join([*blocks, "maxConcurrentLookupRequest=many"]))
    assert (findings.mistakes, findings.warnings) == ([], [])
    assert BrokerConf(topic_publish_rate_messages_per_s=250) == conf


@given(st.sampled_from(RATES), st.integers(INT64_MIN, INT64_MAX), st.sampled_from(["", " ", "\t "]))
def test_every_rate_of_64_bits_is_read_exactly_and_below_0_is_off(name: str, rate: int, blanks: str) -> None:
    assert max(0, rate) == value_of(f"{name}={blanks}{rate}{blanks}", BROKER_KEYS[name].field)


@given(st.sampled_from(RATES), st.integers(INT64_MAX + 1) | st.integers(max_value=INT64_MIN - 1))
def test_every_rate_beyond_64_bits_is_one_mistake(name: str, rate: int) -> None:
    assert len(mistakes_of(f"{name}={rate}")) == 1


@given(st.binary())
def test_no_content_makes_reading_fail(content: bytes) -> None:
    read_broker_conf(read_properties(content, "broker.conf", Findings()), "broker.conf", Findings())
