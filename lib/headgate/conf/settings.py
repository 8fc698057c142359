"""headgate.toml: how the pipeline reads, keys, runs and ends. Frozen and closed; the defaults are complete."""

import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

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
    """A table of a TOML file: immutable, without unknown keys, of exactly the types that are declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    NONE_MEANS: ClassVar[str] = ""
    """What a key without a default is left to, as messages end with it."""


class KafkaSettings(Section):
    """[input.kafka]: read if the format is kafka. Options that look like secrets are never printed."""

    bootstrap_servers: Annotated[
        str, Field(pattern=_SERVERS, description="host:port, several joined by commas"), Meaning("the Kafka brokers")
    ] = "localhost:9092"
    starting_offsets: Annotated[
        str,
        AfterValidator(_offsets),
        Field(description="earliest, latest, or Spark's JSON of offsets by topic and partition"),
        Meaning("where the first start begins; a restart continues"),
    ] = "earliest"
    options: Annotated[
        dict[str, str | SecretStr],
        BeforeValidator(_options),
        Field(description="a table whose values are strings"),
        Meaning(
            "more options of Spark's Kafka source",
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
        Meaning("format of the input if neither `--format` nor the file names tell"),
    ] = "parquet"
    max_files_per_trigger: Annotated[
        int,
        Field(ge=1, le=INT32_MAX, description=f"an integer from 1 to {INT32_MAX}"),
        Meaning("most files per batch"),
    ] = 100
    max_offsets_per_trigger: Annotated[
        int,
        Field(ge=1, le=INT64_MAX, description=f"an integer from 1 to {INT64_MAX}"),
        Meaning("most Kafka offsets per batch"),
    ] = 500_000
    event_time_from: Annotated[
        Instant, Meaning("earlier rows go to the dead letters, but for those of jobs/protocol.py")
    ] = datetime(2000, 1, 1, tzinfo=UTC)
    event_time_until: Annotated[Instant, Meaning("rows from this time on go to the dead letters")] = datetime(
        2100, 1, 1, tzinfo=UTC
    )
    hold_back_ms: Annotated[
        Milliseconds,
        Meaning(
            "how long a row waits, in event time, for earlier ones; 0 if each broker's rows are in order",
            " ([late rows](operations.md#late-rows))",
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
            "how state is split. auto: as finely as shared limits allow. topic: a key for each topic; refused with "
            "broker-wide limits, group limits or attachments to groups"
        ),
    ] = "auto"
    slots: Annotated[
        int,
        Field(ge=1, le=4096, description="an integer from 1 to 4096"),
        Meaning(
            "number of keys with auto. Topics of a broker that share limits have one key; its other topics have up to 8"
        ),
    ] = 32
    traffic: Annotated[
        Literal["admitted", "offered"],
        Field(description="admitted or offered"),
        Meaning(
            "what rows are. admitted: what the broker let in. offered: what clients want to send. `headgate try` and "
            "`replay` use `--traffic` instead",
            " ([which to choose](try.md#offered-or-admitted))",
        ),
    ] = "admitted"
    send_timeout_ms: Annotated[
        Milliseconds,
        Meaning("in offered traffic, a publish that waits longer fails, as in Pulsar's clients"),
    ] = 30_000
    group_limits: Annotated[
        Literal["shared", "each_broker"],
        Field(description="shared or each_broker"),
        Meaning(
            "who enforces a group's quota. shared: all brokers together; results depend on the batches. each_broker: "
            "each broker, the whole quota",
            " ([resource groups](resource-groups.md))",
        ),
    ] = "shared"
    connection_topics: Annotated[
        bool,
        Field(description="true or false"),
        Meaning(
            "whether `marks` lists the topics of each connection, so that `jobs/connections.py` shows all topics that "
            "are paused together"
        ),
    ] = False
    kernel: Annotated[
        Literal["numba", "python"],
        Field(description="numba or python"),
        Meaning("form of the rules. numba: compiled. python: the same results, much slower"),
    ] = "numba"


class TriggerSettings(Section):
    """[trigger]: when a batch begins."""

    interval_ms: Annotated[Milliseconds, Meaning("time between the starts of two batches; 0: as fast as possible")] = (
        1000
    )


class LiveSettings(Section):
    """[live]: time of live input moves without rows, too."""

    live_within_ms: Annotated[Milliseconds, Meaning("input is live if its newest row is younger than this")] = 60_000
    live_lag_ms: Annotated[Milliseconds, Meaning("how far the time of live input stays behind the wall clock")] = 2000


class MetricsSettings(Section):
    """[metrics]: where Prometheus finds the running job, http://address:port/metrics."""

    port: Annotated[
        int,
        Field(ge=0, le=65_535, description="an integer from 0, which is off, to 65535"),
        Meaning(
            "port of the endpoint, one for each job on a machine; `--metrics-port` overrides it",
            " ([metrics](operations.md#metrics))",
        ),
    ] = 0
    address: Annotated[
        str,
        Field(pattern=_ADDRESS, description="an address of this machine, without port, or its name"),
        Meaning("who can connect. 127.0.0.1: this machine. 0.0.0.0: everybody; there is no password"),
    ] = "127.0.0.1"
    topics: Annotated[
        int,
        Field(ge=0, le=10_000, description="an integer from 0 to 10000"),
        Meaning("how many topics have their own series, the first ones throttled; all others are `other`"),
    ] = 0


class ProtocolSettings(Section):
    """[protocol]: how `jobs/protocol.py` waits for rows, and what its brokers decide by.

    What is None is the profile's. The wait for receipts is Pulsar's key, in broker.conf.
    """

    NONE_MEANS: ClassVar[str] = " for what the profile says"

    watermark_delay_ms: Annotated[
        int,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning("how far a row may be behind the newest one without being late; 1: rows are in order"),
    ] = 1
    fan_out: Annotated[
        Literal["tripping", "topic"],
        Field(description="tripping or topic"),
        Meaning(
            "which producers are told to pause. tripping: the one whose publish emptied the limiter. topic: all open "
            "producers of its topic. The first start decides",
            " ([what clients are told](operations.md#what-clients-are-told))",
        ),
    ] = "tripping"
    profile: Annotated[
        Literal["default", "literal"],
        Field(description="default or literal"),
        Meaning("defaults of the next keys. default: the recommended ones. literal: those of PIP-385"),
    ] = "default"
    pause_mode: Annotated[
        Literal["bucket_refill", "second_boundary"] | None,
        Field(description="bucket_refill or second_boundary"),
        Meaning("whether a pause ends when the buckets are refilled, or when the second is over"),
    ] = None
    phase_ms: Annotated[
        int | None,
        Field(ge=0, le=999, description="an integer from 0 to 999"),
        Meaning("with second_boundary: where in a second the pause ends"),
    ] = None
    freeze_deadlines: Annotated[
        bool | None,
        Field(description="true or false"),
        Meaning("whether deadlines of receipts stand still while the connection is not read"),
    ] = None
    violation_policy: Annotated[
        Literal["pause", "off"] | None,
        Field(description="pause or off"),
        Meaning("whether reads stop if a client writes during a pause that it acknowledged"),
    ] = None
    violation_slack_ms: Annotated[
        int | None, Field(ge=0, le=MAX_MS, description=DURATION), Meaning("tolerance at the end of a pause")
    ] = None
    idle_extension_ms: Annotated[
        int | None,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning(
            "by how much a pause is extended if the buckets are refilled but the limiter still holds",
            " ([decision 8](decisions/0008-when-a-pause-ends.md))",
        ),
    ] = None
    extension_step_ms: Annotated[
        int | None,
        Field(ge=1, le=MAX_MS, description=_FROM_1),
        Meaning("smallest gain for which another mark extends a pause at once"),
    ] = None
    doubling_extensions: Annotated[
        bool,
        Field(description="true or false"),
        Meaning(
            "true: a mark during a pause sends a command at once only if it at least doubles what is left; longer "
            "pauses are told when this one ends, so a burst of publishes sends few commands"
        ),
    ] = True
    hard_floor_pause_ms: Annotated[
        int | None,
        Field(ge=0, le=MAX_MS, description=DURATION),
        Meaning("for a longer pause, reads stop without a command; 0: never"),
    ] = None


class StateSettings(Section):
    """[state]: what jobs forget."""

    silent_hours: Annotated[
        int,
        Field(ge=0, le=87_600, description="an integer from 0 to 87600"),
        Meaning(
            "after so long without a row, a connection that nothing holds and a topic of the entry cache that holds "
            "nothing are forgotten: their next row counts from 0; 0: never",
            " ([what grows](operations.md#what-grows))",
        ),
    ] = 24


class TablesSettings(Section):
    """[tables]: how long rows stay."""

    kept_hours: Annotated[
        int,
        Field(ge=0, le=87_600, description="an integer from 0 to 87600"),
        Meaning(
            "rows that are older than the newest one of their table by more are deleted, now and then; 0: never",
            " ([which rows](tables.md#what-is-deleted))",
        ),
    ] = 0


class Settings(Section):
    """The whole of headgate.toml."""

    input: Annotated[InputSettings, Field(description="a table, [input]")] = InputSettings()
    operator: Annotated[OperatorSettings, Field(description="a table, [operator]")] = OperatorSettings()
    trigger: Annotated[TriggerSettings, Field(description="a table, [trigger]")] = TriggerSettings()
    live: Annotated[LiveSettings, Field(description="a table, [live]")] = LiveSettings()
    metrics: Annotated[MetricsSettings, Field(description="a table, [metrics]")] = MetricsSettings()
    protocol: Annotated[ProtocolSettings, Field(description="a table, [protocol]")] = ProtocolSettings()
    state: Annotated[StateSettings, Field(description="a table, [state]")] = StateSettings()
    tables: Annotated[TablesSettings, Field(description="a table, [tables]")] = TablesSettings()


def model_of(root: type[Section], path: tuple[Any, ...]) -> type[Section] | None:
    """Return the model of the table at a path of a file, None if there is no such table. root: of the whole file."""
    model = root
    for part in path:
        info = model.model_fields.get(part)
        if info is None or not (isinstance(info.annotation, type) and issubclass(info.annotation, Section)):
            return None
        model = info.annotation
    return model
