"""Configurations of the protocol: frozen and closed, fixed for the life of a connection (throttle-protocol 4)."""
# ruff: noqa: RUF009  the calls in the classes declare their fields

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, Self

from headgate.core.numbers import MAX, MIN
from headgate.core.settings_keys import Mistake, Setting, choice, integer, shortened, switch
from headgate.errors import ConfError

PROFILE = "profile"
PERCENT = 100


class ProtocolSettingsError(ConfError, ValueError):
    """Mistakes in a configuration of the protocol; nothing was built."""


class Profile(StrEnum):
    """Which reading of PIP-385: the corrected one, or its letter."""

    DEFAULT = "default"
    LITERAL = "literal"


class PauseMode(StrEnum):
    """How long a pause is: until the buckets are refilled, or until the second is over."""

    BUCKET_REFILL = "bucket_refill"
    SECOND_BOUNDARY = "second_boundary"


class ViolationPolicy(StrEnum):
    """What follows when a client writes before the end that it agreed to."""

    PAUSE = "pause"
    OFF = "off"


class FailMode(StrEnum):
    """Which messages fail when one expires: those that expired, or all that are pending."""

    EXPIRED_ONLY = "expired_only"
    HEAD_ALL = "head_all"


class ZeroPause(StrEnum):
    """What a command with pause 0 is to a client: a notice that reads are off, or nothing."""

    OPEN_NOTICE = "open_notice"
    IGNORE = "ignore"


class Routing(StrEnum):
    """Where messages without a partition go."""

    ROUND_ROBIN = "round_robin"
    SINGLE = "single"


@dataclass(frozen=True, slots=True)
class _Settings:
    """Fields with a setting in their metadata; `of` reads values by key."""

    LITERAL: ClassVar[Mapping[str, Any]] = {}
    """Values of the profile `literal`, by field; other fields have their default there, too."""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Settings from values by key: those of `profile` where there is one, overridden by the others.

        Raises ProtocolSettingsError with every unknown key and every value that is not allowed.
        """
        mistakes = list(cls._mistakes(values))
        if mistakes:
            raise ProtocolSettingsError([str(mistake) for mistake in mistakes])
        given = {name: setting.read(values[setting.key]) for name, setting in cls._keys() if setting.key in values}
        column = cls.LITERAL if values.get(PROFILE) == Profile.LITERAL else {}
        return cls(**{**column, **given})

    def values(self) -> dict[str, Any]:
        """The settings by key, as `of` reads them."""
        return {setting.key: getattr(self, name) for name, setting in self._keys()}

    @classmethod
    def _mistakes(cls, values: Mapping[str, object]) -> Iterator[Mistake]:
        settings = {setting.key: setting for _, setting in cls._keys()}
        for key, value in values.items():
            if key == PROFILE:
                if value not in tuple(Profile):
                    yield Mistake(key, shortened(value), " or ".join(Profile), "correct it, or remove it")
            elif key not in settings:
                yield Mistake(key, "an unknown key", ", ".join([PROFILE, *settings]), "correct the name, or remove it")
            else:
                try:
                    settings[key].read(value)
                except (ValueError, TypeError):
                    yield settings[key].mistake(value)

    @classmethod
    def _keys(cls) -> Iterator[tuple[str, Setting]]:
        return ((field.name, field.metadata["setting"]) for field in fields(cls))


@dataclass(frozen=True, slots=True)
class BrokerSettings(_Settings):
    """What a broker decides by. Durations in ms; without a positive receipt wait the protocol is off.

    phase_ms: offset of the second boundary. violation_slack_ms: tolerance at the end of a window.
    idle_extension_ms: where the quote says "refilled" but the limiter still holds. extension_step_ms: smallest gain
    for which a mark extends at once. doubling_extensions: that gain has to be what is left of the window, too, so that
    a burst of marks sends a few commands; what it leaves out is told at the window's end at the latest.
    hard_floor_pause_ms: a longer pause is not negotiated; 0 is off.
    """

    LITERAL: ClassVar[Mapping[str, Any]] = {
        "pause_mode": PauseMode.SECOND_BOUNDARY,
        "freeze_deadlines": False,
        "violation_policy": ViolationPolicy.OFF,
    }

    receipt_wait_ms: int = integer("throttleProducerReceiptWaitTimeMillis", 100, MIN, MAX)
    pause_mode: PauseMode = choice("pause_mode", PauseMode.BUCKET_REFILL)
    phase_ms: int = integer("phase_ms", 0, 0, 999)
    freeze_deadlines: bool = switch("freeze_deadlines", default=True)
    violation_policy: ViolationPolicy = choice("violation_policy", ViolationPolicy.PAUSE)
    violation_slack_ms: int = integer("violation_slack_ms", 10, 0, MAX)
    idle_extension_ms: int = integer("idle_extension_ms", 100, 1, MAX)
    extension_step_ms: int = integer("extension_step_ms", 1, 1, MAX)
    doubling_extensions: bool = switch("doubling_extensions", default=False)
    hard_floor_pause_ms: int = integer("hard_floor_pause_ms", 0, 0, MAX)

    @property
    def is_on(self) -> bool:
        """Whether clients are asked at all."""
        return self.receipt_wait_ms > 0


@dataclass(frozen=True, slots=True)
class _ProducerSettings(_Settings):
    """What the producers of a client go by. Durations in ms.

    send_timeout_ms: 0 is never. throttled_percent: part of the send timeout above which the throttle is to blame.
    drain_delay_ms: lateness of the drain timer. max_pending: messages of a producer that are not completed; 0 is
    unlimited. clock_skew_ms: subtracted from ends that arrive as absolute times. notice_ttl_ms: age beyond which a
    notice that arrives as a row is stale.
    """

    LITERAL: ClassVar[Mapping[str, Any]] = {"fail_mode": FailMode.HEAD_ALL, "zero_pause": ZeroPause.IGNORE}

    enabled: bool = switch("enabled", default=True)
    send_timeout_ms: int = integer("send_timeout_ms", 30_000, 0, MAX)
    throttled_percent: int = integer("throttled_percent", 80, 0, PERCENT)
    fail_mode: FailMode = choice("fail_mode", FailMode.EXPIRED_ONLY)
    zero_pause: ZeroPause = choice("zero_pause", ZeroPause.OPEN_NOTICE)
    drain_delay_ms: int = integer("drain_delay_ms", 0, 0, MAX)
    max_pending: int = integer("max_pending", 0, 0, MAX)
    clock_skew_ms: int = integer("clock_skew_ms", 0, 0, MAX)
    notice_ttl_ms: int = integer("notice_ttl_ms", 5000, 0, MAX)


def _topics(value: object) -> object:
    """Topics by producer id, ascending. Ids may be written as text, as keys of JSON are."""
    if not isinstance(value, Mapping) or not all(isinstance(topic, str) for topic in value.values()):
        raise ValueError(value)
    topics = {_producer_id(key): topic for key, topic in value.items()}
    if len(topics) != len(value):
        raise ValueError(value)
    return dict(sorted(topics.items()))


def _producer_id(key: object) -> int:
    number = int(key) if isinstance(key, str) and key.isascii() and key.isdecimal() else key
    if type(number) is not int or not 0 <= number <= MAX:
        raise ValueError(key)
    return number


@dataclass(frozen=True, slots=True)
class ClientSettings(_ProducerSettings):
    """What the client of a connection goes by, with its producers: topics by producer id."""

    producers: Mapping[int, str] = field(
        default_factory=dict,
        metadata={"setting": Setting("producers", "topics by producer id from 0 to 2^63-1", _topics, "none")},
    )


def _topic(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004  a value that is not allowed, as every setting says it
    return value


@dataclass(frozen=True, slots=True)
class PartitionedSettings(_ProducerSettings):
    """What a partitioned producer goes by: partition i has the topic `<topic>-partition-<i>`.

    single_partition: where messages go with the routing `single`. slice_ms: how long a partition is used again.
    cursor: the partition that round robin begins with.
    """

    topic: str = field(default="t", metadata={"setting": Setting("topic", "a text", _topic, "t")})
    partitions: int = integer("partitions", 1, 1)
    routing: Routing = choice("routing", Routing.ROUND_ROBIN)
    single_partition: int = integer("single_partition", 0, 0)
    slice_ms: int = integer("slice_ms", 0, 0, MAX)
    cursor: int = integer("cursor", 0, 0)

    @property
    def client(self) -> ClientSettings:
        """What the client of the partitions goes by: partition i is its producer i."""
        shared = {shared.name: getattr(self, shared.name) for shared in fields(_ProducerSettings)}
        topics = {partition: f"{self.topic}-partition-{partition}" for partition in range(self.partitions)}
        return ClientSettings(**shared, producers=topics)

    def __post_init__(self) -> None:
        for key in ("cursor", "single_partition"):
            value, allowed = getattr(self, key), f"a partition from 0 to {self.partitions - 1}"
            if value >= self.partitions:
                raise ProtocolSettingsError([str(Mistake(key, str(value), allowed, "correct it, or add partitions"))])
