"""headgate.toml: complete defaults, no unknown keys, exact types, hidden secrets."""

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.conf import Settings
from headgate.conf.findings import MAX_MS, Findings
from headgate.conf.settings_file import read_settings

OF_PROFILE = (
    *("pause_mode", "phase_ms", "freeze_deadlines", "violation_policy", "violation_slack_ms"),
    *("idle_extension_ms", "extension_step_ms", "hard_floor_pause_ms"),
)
"""Keys of [protocol] that the profile decides where they are left out."""
SECTIONS = "input, live, metrics, operator, protocol, state, tables, trigger"
MS = f"an integer from 0 to {MAX_MS}"
INSTANT = "an ISO 8601 time with its zone, from 1970-01-01T00:00:00Z to 2262-04-11T23:47:16Z"


def read(text: str) -> tuple[Settings, Findings]:
    findings = Findings()
    return read_settings(text, "headgate.toml", findings), findings


def valid(text: str) -> Settings:
    settings, findings = read(text)
    assert findings.mistakes == []
    return settings


def test_the_defaults_are_the_documented_ones() -> None:
    assert {
        "input": {
            "format": "parquet",
            "max_files_per_trigger": 100,
            "max_offsets_per_trigger": 500_000,
            "event_time_from": datetime(2000, 1, 1, tzinfo=UTC),
            "event_time_until": datetime(2100, 1, 1, tzinfo=UTC),
            "hold_back_ms": 0,
            "kafka": {"bootstrap_servers": "localhost:9092", "starting_offsets": "earliest", "options": {}},
        },
        "operator": {
            "state_key": "auto",
            "slots": 32,
            "traffic": "admitted",
            "send_timeout_ms": 30_000,
            "group_limits": "shared",
            "connection_topics": False,
            "kernel": "numba",
        },
        "trigger": {"interval_ms": 1000},
        "live": {"live_within_ms": 60_000, "live_lag_ms": 2000},
        "metrics": {"port": 0, "address": "127.0.0.1", "topics": 0},
        "protocol": {
            "watermark_delay_ms": 1,
            "fan_out": "tripping",
            "profile": "default",
            "doubling_extensions": True,
            **dict.fromkeys(OF_PROFILE),
        },
        "state": {"silent_hours": 24},
        "tables": {"kept_hours": 0},
    } == Settings().model_dump()


def test_an_empty_file_is_the_default() -> None:
    assert Settings() == valid("")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().operator.slots = 3


@pytest.mark.parametrize(
    ("text", "section", "key", "expected"),
    [
        ('[input]\nformat = "kafka"', "input", "format", "kafka"),
        (
            '[input]\nevent_time_from = "2001-02-03T04:05:06+01:00"',
            "input",
            "event_time_from",
            datetime(2001, 2, 3, 3, 5, 6, tzinfo=UTC),
        ),
        (
            "[input]\nevent_time_from = 2001-02-03T04:05:06Z",
            "input",
            "event_time_from",
            datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC),
        ),
        (
            '[input]\nevent_time_until = "2262-04-11T23:47:16Z"',
            "input",
            "event_time_until",
            datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC),
        ),
        ("operator.slots = 4096", "operator", "slots", 4096),
        ('[operator]\ntraffic = "offered"', "operator", "traffic", "offered"),
        ("trigger = { interval_ms = 0 }", "trigger", "interval_ms", 0),
        ("[metrics]\nport = 65535", "metrics", "port", 65_535),
        ('[metrics]\naddress = "::1"', "metrics", "address", "::1"),
    ],
)
def test_values_are_read(text: str, section: str, key: str, expected: object) -> None:
    assert expected == getattr(getattr(valid(text), section), key)


def remove(default: object) -> str:
    return f"correct it, or remove the line for the default ({default})"


@pytest.mark.parametrize(
    ("section", "line", "expected"),
    [
        ("input", 'format = "xml"', f"got 'xml'; allowed: parquet, json, csv, delta or kafka; {remove('parquet')}"),
        ("input", "max_files_per_trigger = 0", f"got 0; allowed: an integer from 1 to 2147483647; {remove(100)}"),
        (
            "input",
            "max_offsets_per_trigger = 1.0",
            f"got 1.0; allowed: an integer from 1 to 9223372036854775807; {remove(500000)}",
        ),
        ("input", "hold_back_ms = -1", f"got -1; allowed: {MS}; {remove(0)}"),
        (
            "input",
            'event_time_from = "2000-01-01T00:00:00"',
            f"got '2000-01-01T00:00:00'; allowed: {INSTANT}; {remove('2000-01-01T00:00:00Z')}",
        ),
        (
            "input",
            'event_time_from = "1969-12-31T23:59:59Z"',
            f"got '1969-12-31T23:59:59Z'; allowed: {INSTANT}; {remove('2000-01-01T00:00:00Z')}",
        ),
        (
            "input",
            'event_time_until = "9999-12-31T23:59:59-05:00"',
            f"got '9999-12-31T23:59:59-05:00'; allowed: {INSTANT}; {remove('2100-01-01T00:00:00Z')}",
        ),
        ("input", "event_time_until = 5", f"got 5; allowed: {INSTANT}; {remove('2100-01-01T00:00:00Z')}"),
        ("input", 'kafka = "a:1"', "got 'a:1'; allowed: a table, [input.kafka]; correct it"),
        (
            "input.kafka",
            'bootstrap_servers = "here"',
            f"got 'here'; allowed: host:port, several joined by commas; {remove('localhost:9092')}",
        ),
        (
            "input.kafka",
            'starting_offsets = "soon"',
            (
                f"got 'soon'; allowed: earliest, latest, or Spark's JSON of offsets by topic and partition; "
                f"{remove('earliest')}"
            ),
        ),
        ("operator", "slots = 4097", f"got 4097; allowed: an integer from 1 to 4096; {remove(32)}"),
        ("operator", "slots = true", f"got True; allowed: an integer from 1 to 4096; {remove(32)}"),
        ("operator", 'slots = "8"', f"got '8'; allowed: an integer from 1 to 4096; {remove(32)}"),
        ("operator", 'state_key = "broker"', f"got 'broker'; allowed: auto or topic; {remove('auto')}"),
        ("operator", 'traffic = "all"', f"got 'all'; allowed: admitted or offered; {remove('admitted')}"),
        ("operator", 'kernel = "c"', f"got 'c'; allowed: numba or python; {remove('numba')}"),
        ("operator", f"send_timeout_ms = {MAX_MS + 1}", f"got {MAX_MS + 1}; allowed: {MS}; {remove(30000)}"),
        ("trigger", "interval_ms = -1", f"got -1; allowed: {MS}; {remove(1000)}"),
        ("live", "live_within_ms = -1", f"got -1; allowed: {MS}; {remove(60000)}"),
        ("live", "live_lag_ms = -1", f"got -1; allowed: {MS}; {remove(2000)}"),
        (
            "metrics",
            "port = 65536",
            f"got 65536; allowed: an integer from 0, which is off, to 65535; {remove(0)}",
        ),
        (
            "metrics",
            'address = "http://here"',
            (
                "got 'http://here'; allowed: an address of this machine, without port, or its name; "
                f"{remove('127.0.0.1')}"
            ),
        ),
        ("metrics", "topics = 10001", f"got 10001; allowed: an integer from 0 to 10000; {remove(0)}"),
        (
            "protocol",
            "phase_ms = 1000",
            "got 1000; allowed: an integer from 0 to 999; correct it, or remove the line for what the profile says",
        ),
        (
            "live",
            "live_lags_ms = 1",
            "got an unknown key; allowed: live_lag_ms, live_within_ms; did you mean live_lag_ms?",
        ),
    ],
)
def test_a_wrong_value_names_line_key_value_range_and_default(section: str, line: str, expected: str) -> None:
    key = line.split(maxsplit=1)[0]
    assert [f"headgate.toml line 2: {section}.{key}: {expected}"] == read(f"[{section}]\n{line}\n")[1].mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a = ",
            "headgate.toml line 1: got Invalid value at the end of the file; allowed: TOML; correct the syntax",
        ),
        (
            '[input]\nformat = """csv\n\n',
            "headgate.toml line 3: got Unterminated string at the end of the file; allowed: TOML; correct the syntax",
        ),
        (
            "[input]\nformat = csv\n",
            "headgate.toml line 2: got Invalid value at column 10; allowed: TOML; correct the syntax",
        ),
        (
            "[live]\n\n[live]\n",
            "headgate.toml line 3: got Cannot declare ('live',) twice at column 6; allowed: TOML; correct the syntax",
        ),
        (
            "[triger]",
            (f"headgate.toml line 1: triger: got an unknown key; allowed: {SECTIONS}; did you mean trigger?"),
        ),
        (
            "x = 1",
            f"headgate.toml line 1: x: got an unknown key; allowed: {SECTIONS}; delete it",
        ),
        (
            '[input]\nevent_time_from = "2100-01-01T00:00:00Z"',
            (
                "headgate.toml line 1: input: got event_time_from 2100-01-01T00:00:00+00:00 and event_time_until "
                "2100-01-01T00:00:00+00:00; allowed: event_time_from before event_time_until; exchange or correct them"
            ),
        ),
    ],
)
def test_a_mistake_of_the_whole_is_named(text: str, expected: str) -> None:
    assert [expected] == read(text)[1].mistakes


def test_rules_for_several_keys_are_checked_beside_other_mistakes_and_the_rest_is_kept() -> None:
    settings, findings = read(
        '[input]\nhold_back_ms = -1\nevent_time_from = "2200-01-01T00:00:00Z"\n[operator]\nslots = 7\nkernel = 1\n'
    )
    assert [line.split(": ")[1] for line in findings.mistakes] == ["input.hold_back_ms", "operator.kernel", "input"]
    assert Settings.model_validate({"operator": {"slots": 7}}) == settings


SECRETS = """
[input]
format = "kafka"
[input.kafka.options]
"kafka.sasl.jaas.config" = "hunter1"
kafka.ssl.key.password = "hunter2"
kafka.ssl.keystore.key = "hunter3"
"KAFKA.OAUTH.TOKEN" = "hunter4"
kafka.security.protocol = "SASL_SSL"
"""


def test_kafka_options_reach_spark_in_clear_with_their_dotted_names() -> None:
    assert valid(SECRETS).input.kafka.spark_options() == {
        "kafka.sasl.jaas.config": "hunter1",
        "kafka.ssl.key.password": "hunter2",
        "kafka.ssl.keystore.key": "hunter3",
        "KAFKA.OAUTH.TOKEN": "hunter4",
        "kafka.security.protocol": "SASL_SSL",
    }


def test_secret_options_are_never_printed() -> None:
    settings = valid(SECRETS)
    for printed in (repr(settings), str(settings.input.kafka), str(settings.model_dump()), settings.model_dump_json()):
        assert "hunter" not in printed
        assert "SASL_SSL" in printed


@pytest.mark.parametrize(
    "options",
    ["kafka.sasl.password = 51", 'password.a.b = ["51"]', 'x = 1\n[input.kafka.options.secret]\nk = "51"'],
)
def test_secret_options_are_hidden_in_messages(options: str) -> None:
    mistakes = read(f"[input.kafka.options]\n{options}\n")[1].mistakes
    assert len(mistakes) == 1
    assert "**********" in mistakes[0]
    assert "51" not in mistakes[0]


def test_options_that_are_not_a_table_are_not_printed() -> None:
    expected = [
        "headgate.toml line 2: input.kafka.options: got a str; allowed: a table whose values are strings; correct it"
    ]
    assert expected == read('[input.kafka]\noptions = "password=hunter2"\n')[1].mistakes


def test_settings_survive_pickling_with_their_secrets() -> None:
    settings = valid(SECRETS)
    assert settings == pickle.loads(pickle.dumps(settings))


@given(st.integers(0, MAX_MS))
def test_every_duration_is_read_exactly(duration_ms: int) -> None:
    assert duration_ms == valid(f"[trigger]\ninterval_ms = {duration_ms}").trigger.interval_ms


LINES = st.sampled_from(
    [
        *(
            "[input]",
            "[input.kafka]",
            "[input.kafka.options]",
            "[operator]",
            "[live]",
            "[[operator]]",
            "[input.kafka.x]",
        ),
        *('format = "csv"', "format = {}", "slots = 1", "slots = [1]", "kafka = 1", "options = []", "input = 1"),
        *('event_time_from = "2150-01-01T00:00:00Z"', "event_time_from = 12:00:00", 'a.b = {c = "d"}', "a = nan", "="),
    ]
)


@given(st.lists(LINES, max_size=6))
def test_no_text_makes_reading_fail(lines: list[str]) -> None:
    read("\n".join(lines))
