"""headgate.toml: how the pipeline reads, keys, runs and ends. Frozen and closed; the defaults are complete."""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from headgate.conf.findings import INT32_MAX, INT64_MAX, MAX_MS

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC)
"""The last whole second whose nanoseconds since 1970 fit in 64 bits."""

_SECRET: Final = re.compile(
    r"passw|secret|token|credential|jaas|passphrase|private|api.?key|keystore\.key", re.IGNORECASE
)
_SERVERS: Final = re.compile(r"[^\s,:/]+:[0-9]{1,5}(,[^\s,:/]+:[0-9]{1,5})*")
_ADDRESS: Final = r"^[^\s/]+$"

# The description of a field is what a message says is allowed.
_DURATION: Final = f"an integer from 0 to {MAX_MS}"
Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS, description=_DURATION)]


def is_secret(key: str) -> bool:
    """Return whether the value of a Kafka option is to be hidden, judging by the option's name."""
    return _SECRET.search(key) is not None


def _instant(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError(value)
    if not EARLIEST <= moment <= LATEST:  # before the conversion, which overflows in the years 1 and 9999
        raise ValueError(value)
    return moment.astimezone(UTC)


def _offsets(value: str) -> str:
    if value not in {"earliest", "latest"} and not isinstance(json.loads(value), dict):
        raise ValueError(value)
    return value


def _options(value: object) -> object:
    """Join nested tables with dots, as TOML reads an unquoted `kafka.security.protocol`, and hide secrets."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, object] = {}
    for key, option in value.items():
        inner = _options(option) if isinstance(option, dict) else None
        if isinstance(inner, dict):
            flat.update({f"{key}.{name}": inner[name] for name in inner})
        else:
            flat[key] = option
    return {key: SecretStr(text) if isinstance(text, str) and is_secret(key) else text for key, text in flat.items()}


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    Field(
        description=f"an ISO 8601 time with its zone, from {EARLIEST:%Y-%m-%dT%H:%M:%SZ} to {LATEST:%Y-%m-%dT%H:%M:%SZ}"
    ),
]


class Section(BaseModel):
    """A table of headgate.toml: immutable, without unknown keys, of exactly the types that are declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class KafkaSettings(Section):
    """[input.kafka]: used when the input's format is kafka. Options that look like secrets are never printed."""

    bootstrap_servers: Annotated[str, Field(pattern=_SERVERS, description="host:port, several joined by commas")] = (
        "localhost:9092"
    )
    starting_offsets: Annotated[
        str,
        AfterValidator(_offsets),
        Field(description="earliest, latest, or Spark's JSON of offsets by topic and partition"),
    ] = "earliest"
    options: Annotated[
        dict[str, str | SecretStr],
        BeforeValidator(_options),
        Field(description="a table whose values are strings"),
    ] = {}

    def spark_options(self) -> dict[str, str]:
        """Return the extra options in clear, for Spark's reader and for nothing else."""
        return {
            key: option.get_secret_value() if isinstance(option, SecretStr) else option
            for key, option in self.options.items()
        }


class InputSettings(Section):
    """[input]: what a batch takes, and the span outside which an event time makes a row bad."""

    format: Annotated[
        Literal["parquet", "json", "csv", "delta", "kafka"],
        Field(description="parquet, json, csv, delta or kafka"),
    ] = "parquet"
    max_files_per_trigger: Annotated[
        int, Field(ge=1, le=INT32_MAX, description=f"an integer from 1 to {INT32_MAX}")
    ] = 100
    max_offsets_per_trigger: Annotated[
        int, Field(ge=1, le=INT64_MAX, description=f"an integer from 1 to {INT64_MAX}")
    ] = 500_000
    event_time_from: Instant = datetime(2000, 1, 1, tzinfo=UTC)
    event_time_until: Instant = datetime(2100, 1, 1, tzinfo=UTC)
    hold_back_ms: Milliseconds = 0
    kafka: Annotated[KafkaSettings, Field(description="a table, [input.kafka]")] = KafkaSettings()

    @model_validator(mode="after")
    def _span(self) -> "InputSettings":
        if self.event_time_from >= self.event_time_until:
            raise PydanticCustomError(
                "span",
                "event_time_from {first} and event_time_until {until}",
                {"first": self.event_time_from.isoformat(), "until": self.event_time_until.isoformat()},
            )
        return self


class OperatorSettings(Section):
    """[operator]: how rows are keyed, what an event means, which form of the rules runs."""

    state_key: Annotated[Literal["auto", "topic"], Field(description="auto or topic")] = "auto"
    slots: Annotated[int, Field(ge=1, le=4096, description="an integer from 1 to 4096")] = 32
    traffic: Annotated[Literal["admitted", "offered"], Field(description="admitted or offered")] = "admitted"
    send_timeout_ms: Milliseconds = 30_000
    group_limits: Annotated[Literal["shared", "each_broker"], Field(description="shared or each_broker")] = "shared"
    connection_topics: Annotated[bool, Field(description="true or false")] = False
    kernel: Annotated[Literal["numba", "python"], Field(description="numba or python")] = "numba"


class TriggerSettings(Section):
    """[trigger]: the time between two batches; 0 is as fast as possible."""

    interval_ms: Milliseconds = 1000


class LiveSettings(Section):
    """[live]: how near to the wall clock the input must be to count as live, and how far the clock stays behind it."""

    live_within_ms: Milliseconds = 60_000
    live_lag_ms: Milliseconds = 2000


class MetricsSettings(Section):
    """[metrics]: where Prometheus finds the running job, and how many topics have series of their own."""

    port: Annotated[int, Field(ge=0, le=65_535, description="an integer from 0, which is off, to 65535")] = 0
    address: Annotated[
        str, Field(pattern=_ADDRESS, description="an address of this machine, without port, or its name")
    ] = "127.0.0.1"
    topics: Annotated[int, Field(ge=0, le=10_000, description="an integer from 0 to 10000")] = 0


class ProtocolSettings(Section):
    """[protocol]: how the throttle protocol's job waits for rows, and what its broker side decides by.

    fan_out: whom a mark goes to, the producer that tripped the limiter or all of its topic.
    What is None is the profile's. The wait for receipts is Pulsar's key, in broker.conf.
    """

    watermark_delay_ms: Annotated[int, Field(ge=1, le=MAX_MS, description=f"an integer from 1 to {MAX_MS}")] = 1
    fan_out: Annotated[Literal["tripping", "topic"], Field(description="tripping or topic")] = "tripping"
    profile: Annotated[Literal["default", "literal"], Field(description="default or literal")] = "default"
    pause_mode: Annotated[
        Literal["bucket_refill", "second_boundary"] | None, Field(description="bucket_refill or second_boundary")
    ] = None
    phase_ms: Annotated[int | None, Field(ge=0, le=999, description="an integer from 0 to 999")] = None
    freeze_deadlines: Annotated[bool | None, Field(description="true or false")] = None
    violation_policy: Annotated[Literal["pause", "off"] | None, Field(description="pause or off")] = None
    violation_slack_ms: Annotated[int | None, Field(ge=0, le=MAX_MS, description=_DURATION)] = None
    idle_extension_ms: Annotated[int | None, Field(ge=1, le=MAX_MS, description=f"an integer from 1 to {MAX_MS}")] = (
        None
    )
    extension_step_ms: Annotated[int | None, Field(ge=1, le=MAX_MS, description=f"an integer from 1 to {MAX_MS}")] = (
        None
    )
    hard_floor_pause_ms: Annotated[int | None, Field(ge=0, le=MAX_MS, description=_DURATION)] = None


class Settings(Section):
    """The whole of headgate.toml."""

    input: Annotated[InputSettings, Field(description="a table, [input]")] = InputSettings()
    operator: Annotated[OperatorSettings, Field(description="a table, [operator]")] = OperatorSettings()
    trigger: Annotated[TriggerSettings, Field(description="a table, [trigger]")] = TriggerSettings()
    live: Annotated[LiveSettings, Field(description="a table, [live]")] = LiveSettings()
    metrics: Annotated[MetricsSettings, Field(description="a table, [metrics]")] = MetricsSettings()
    protocol: Annotated[ProtocolSettings, Field(description="a table, [protocol]")] = ProtocolSettings()


def model_of(path: tuple[Any, ...]) -> type[Section] | None:
    """Return the model of the table at a path of headgate.toml, None if there is no such table."""
    model: type[Section] = Settings
    for part in path:
        info = model.model_fields.get(part)
        if info is None or not (isinstance(info.annotation, type) and issubclass(info.annotation, Section)):
            return None
        model = info.annotation
    return model
