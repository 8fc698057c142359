"""headgate.toml: how the pipeline reads, keys, runs and ends. Frozen and closed; the defaults are complete."""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

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

# The description of a field is what messages, the shipped file and the page say is allowed.
DURATION: Final = f"an integer from 0 to {MAX_MS}"
_FROM_1: Final = f"an integer from 1 to {MAX_MS}"
Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS, description=DURATION)]


class Meaning(NamedTuple):
    """What a key means, for the shipped file and docs/configuration.md (reference.py).

    more: what the page alone adds. example: a line of the table that is its value, for one that is empty by default.
    """

    text: str
    more: str = ""
    example: str = ""


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
    """[input.kafka]: read if the format is kafka. Options that look like secrets are never printed."""

    bootstrap_servers: Annotated[
        str, Field(pattern=_SERVERS, description="host:port, several joined by commas"), Meaning("the Kafka brokers")
    ] = "localhost:9092"
    starting_offsets: Annotated[
        str,
        AfterValidator(_offsets),
        Field(description="earliest, latest, or Spark's JSON of offsets by topic and partition"),
        Meaning("where the first start begins; later ones go on where they stopped"),
    ] = "earliest"
    options: Annotated[
        dict[str, str | SecretStr],
        BeforeValidator(_options),
        Field(description="a table whose values are strings"),
        Meaning(
            "more options of Spark's Kafka source",
            '; `kafka.security.protocol = "SSL"` may be written without quotes around the key',
            example='kafka.security.protocol = "SASL_SSL"',
        ),
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
        Meaning("form of the input where neither `--format` nor the names of the files say it"),
    ] = "parquet"
    max_files_per_trigger: Annotated[
        int,
        Field(ge=1, le=INT32_MAX, description=f"an integer from 1 to {INT32_MAX}"),
        Meaning("most files of a batch"),
    ] = 100
    max_offsets_per_trigger: Annotated[
        int,
        Field(ge=1, le=INT64_MAX, description=f"an integer from 1 to {INT64_MAX}"),
        Meaning("most Kafka offsets of a batch"),
    ] = 500_000
    event_time_from: Annotated[Instant, Meaning("rows with an earlier event time go to the dead letters")] = datetime(
        2000, 1, 1, tzinfo=UTC
    )
    event_time_until: Annotated[Instant, Meaning("rows from this event time on go to the dead letters")] = datetime(
        2100, 1, 1, tzinfo=UTC
    )
    hold_back_ms: Annotated[
        Milliseconds,
        Meaning(
            "how long a row waits, in event time, for earlier ones; 0 for a source that is in order per broker",
            " ([late rows](operations.md), [the entry cache](operations.md#the-entry-cache))",
        ),
    ] = 0
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

    state_key: Annotated[
        Literal["auto", "topic"],
        Field(description="auto or topic"),
        Meaning(
            "how state is split. auto: as finely as limits that topics share allow. topic: a key for each topic, plain "
            "to inspect; refused where a broker-wide or group limit is set or a group is attached"
        ),
    ] = "auto"
    slots: Annotated[
        int,
        Field(ge=1, le=4096, description="an integer from 1 to 4096"),
        Meaning(
            "number of keys with auto: every domain (topics of a broker that share limits) goes to one, topics of one "
            "broker without a shared limit to at most 8"
        ),
    ] = 32
    traffic: Annotated[
        Literal["admitted", "offered"],
        Field(description="admitted or offered"),
        Meaning(
            "what a row is. admitted: what the broker let in. offered: what a client wants to send, and the job says "
            "what would have waited. For jobs: `headgate try` and `replay` have `--traffic`",
            " ([which to choose](try.md#offered-or-admitted))",
        ),
    ] = "admitted"
    send_timeout_ms: Annotated[
        Milliseconds,
        Meaning("in offered traffic a message that waits longer has failed; Pulsar's clients give up after 30 s"),
    ] = 30_000
    group_limits: Annotated[
        Literal["shared", "each_broker"],
        Field(description="shared or each_broker"),
        Meaning(
            "whether brokers share the quota of a group, or each enforces all of it. Shared limits follow the batches, "
            "so what they throttle depends on how the input is cut",
            " ([resource groups](resource-groups.md))",
        ),
    ] = "shared"
    connection_topics: Annotated[
        bool,
        Field(description="true or false"),
        Meaning(
            "whether `marks` gets a row at the first publish of each topic over each connection, by which "
            "`jobs/connections.py` says who is paused with whom"
        ),
    ] = False
    kernel: Annotated[
        Literal["numba", "python"],
        Field(description="numba or python"),
        Meaning(
            "form of the rules that runs. numba: over arrays. python: as they read, with the same results, much slower"
        ),
    ] = "numba"


class TriggerSettings(Section):
    """[trigger]: when a batch begins."""

    interval_ms: Annotated[
        Milliseconds, Meaning("time from the start of one batch to the start of the next; 0: as fast as possible")
    ] = 1000


class LiveSettings(Section):
    """[live]: time of live input moves without rows, too."""

    live_within_ms: Annotated[
        Milliseconds, Meaning("input is live whose newest row is this near to the wall clock")
    ] = 60_000
    live_lag_ms: Annotated[Milliseconds, Meaning("how far the time of live input stays behind the wall clock")] = 2000


class MetricsSettings(Section):
    """[metrics]: where Prometheus finds the running job, http://address:port/metrics."""

    port: Annotated[
        int,
        Field(ge=0, le=65_535, description="an integer from 0, which is off, to 65535"),
        Meaning(
            "port of the endpoint; 0: none. `--metrics-port` wins, as each job on a machine needs its own",
            " ([metrics](operations.md#metrics))",
        ),
    ] = 0
    address: Annotated[
        str,
        Field(pattern=_ADDRESS, description="an address of this machine, without port, or its name"),
        Meaning("who may ask. 127.0.0.1: this machine alone. 0.0.0.0: whoever reaches it; there is no password"),
    ] = "127.0.0.1"
    topics: Annotated[
        int,
        Field(ge=0, le=10_000, description="an integer from 0 to 10000"),
        Meaning("how many topics have series of their own, the first that are throttled; the others are one, `other`"),
    ] = 0


class ProtocolSettings(Section):
    """[protocol]: how `jobs/protocol.py` waits for rows, and what its brokers decide by.

    What is None is the profile's. The wait for receipts is Pulsar's key, in broker.conf.
    """

    watermark_delay_ms: Annotated[
        int,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning("how far a row may be behind the latest one and still be put in its place; 1: rows are in order"),
    ] = 1
    fan_out: Annotated[
        Literal["tripping", "topic"],
        Field(description="tripping or topic"),
        Meaning(
            "whom a mark goes to. tripping: the producer that tripped the limiter. topic: every producer of its topic "
            "that is open then. The first start decides",
            " ([what clients are told](operations.md#what-clients-are-told))",
        ),
    ] = "tripping"
    profile: Annotated[
        Literal["default", "literal"],
        Field(description="default or literal"),
        Meaning("whether the next keys are as is best (default), or as PIP-385 has them; each can be set by itself"),
    ] = "default"
    pause_mode: Annotated[
        Literal["bucket_refill", "second_boundary"] | None,
        Field(description="bucket_refill or second_boundary"),
        Meaning("whether a client is asked to stop until the buckets are refilled, or until the second is over"),
    ] = None
    phase_ms: Annotated[
        int | None, Field(ge=0, le=999, description="an integer from 0 to 999"), Meaning("where in a second it is over")
    ] = None
    freeze_deadlines: Annotated[
        bool | None,
        Field(description="true or false"),
        Meaning("whether deadlines of receipts stand still while nothing is read from the connection"),
    ] = None
    violation_policy: Annotated[
        Literal["pause", "off"] | None,
        Field(description="pause or off"),
        Meaning("whether reads go off when a client writes before the end that it agreed to"),
    ] = None
    violation_slack_ms: Annotated[
        int | None, Field(ge=0, le=MAX_MS, description=DURATION), Meaning("tolerance at the end of a pause")
    ] = None
    idle_extension_ms: Annotated[
        int | None,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning(
            "by how much a pause is extended where the buckets are refilled and the limiter still holds; with 20 "
            "clients lose half as much time, for three times the commands",
            " ([decision 8](decisions/0008-when-a-pause-ends.md))",
        ),
    ] = None
    extension_step_ms: Annotated[
        int | None,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning("smallest gain for which a further mark extends a pause at once"),
    ] = None
    hard_floor_pause_ms: Annotated[
        int | None,
        Field(ge=0, le=MAX_MS, description=DURATION),
        Meaning("for a longer pause reads go off without asking; 0: for none"),
    ] = None


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
