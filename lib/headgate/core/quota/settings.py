"""The configuration of resource groups: frozen and closed, with all mistakes reported at once (resource-groups 14).

Values come with their types; reading them from files is the configuration package's.
"""
# ruff: noqa: RUF009  the calls in QuotaSettings declare its fields

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

from headgate.core.quota.allocation.allocation import Division, Profile
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters
from headgate.core.quota.groups import INT32_MAX
from headgate.core.quota.rates import WEIGHT_MAX
from headgate.core.quota.usage.reports import ReportParameters, ReportRule
from headgate.core.quota.usage.usage_map import MapParameters
from headgate.core.quota.usage.usage_report import MeterParameters
from headgate.core.settings_keys import Mistake, Setting, choice, integer, secrets, switch, text
from headgate.errors import ConfError

PREFIXES = ("resourceGroup", "resourceUsage")
SECOND_MS = 1000
DEFAULT_EPOCH_MS = 1000
SHARDS_MAX = 1000
_INTERVAL = "resourceUsageTransportPublishIntervalInSecs"
_TRANSPORT = "resourceUsageTransportClassName"
_LOCATION = "the location of a table"


class MembershipSource(StrEnum):
    """Where it stands who is a member: in a table of its own, or in the reports (resource-groups 5.3)."""

    TABLE = "table"
    REPORTS = "reports"


class MinusOne(StrEnum):
    """What -1 means in an update of a group: not limited, or the old value (resource-groups 4)."""

    UNSET = "unset"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """Every key of resource-groups 14 as a field; a field without a value of its own has the default.

    Durations are in ms, percentages integers, table locations None where unset. `epoch_ms` and `stale_report_ms` are
    never None: left out, they follow from other keys. Raises ConfError, which lists all values that are not allowed.
    """

    transport_class_name: str = text(_TRANSPORT, "", "a text")
    transport_publish_interval_s: int | None = integer(_INTERVAL, None, 1, INT32_MAX // SECOND_MS)
    epoch_ms: int = integer("resourceGroupEpochMillis", None, 1, derived=f"{_INTERVAL} in ms, or {DEFAULT_EPOCH_MS}")
    epoch_grace_ms: int = integer("resourceGroupEpochGraceMillis", 0, 0)
    tolerance_percent: int = integer("resourceUsageReportSuppressionTolerancePercentage", 5, 0)
    suppress_rounds: int = integer("resourceUsageMaxUsageReportSuppressRounds", 5, -INT32_MAX - 1)
    report_rule: ReportRule = choice("resourceGroupReportRule", ReportRule.HEADGATE)
    event_min_interval_ms: int = integer("resourceGroupEventMinIntervalMillis", 100, 1)
    event_change_percent: int = integer("resourceGroupEventChangePercent", 10, 0)
    stale_report_ms: int = integer("resourceGroupStaleReportMillis", None, 0, derived="two epochs")
    max_staleness_rounds: int = integer("resourceGroupMaxStalenessRounds", 3, 1)
    linger_rounds: int = integer("resourceGroupLingerRounds", 60, 0)
    allocation_profile: Profile = choice("resourceGroupAllocationProfile", Profile.MAX_MIN)
    allocation_mode: Mode = choice("resourceGroupAllocationMode", Mode.FAST)
    overshoot_percent: int = integer("resourceGroupOvershootPercent", 5, 0, 100)
    floor_percent: int = integer("resourceGroupFloorPercent", 5, 0, 100)
    missing_claim_percent: int = integer("resourceGroupMissingClaimPercent", 20, 0, 100)
    dead_band_percent: int = integer("resourceGroupDeadBandPercent", 0, 0, 100)
    silent_rounds: int = integer("resourceGroupSilentRounds", 8, 2)
    couple_dimensions: bool = switch("resourceGroupCoupleDimensions")
    topic_division: Division = choice("resourceGroupTopicDivision", Division.MAX_MIN)
    topic_shards: int = integer("resourceGroupTopicShards", 16, 1, SHARDS_MAX)
    broker_weight: int = integer("resourceGroupBrokerWeight", 1, 1, WEIGHT_MAX)
    membership: MembershipSource = choice("resourceGroupMembership", MembershipSource.TABLE)
    broker_count: int | None = integer("resourceGroupBrokerCount", None, 1)
    usage_table: str | None = text("resourceGroupUsageTable", None, _LOCATION)
    group_table: str | None = text("resourceGroupGroupTable", None, _LOCATION)
    attachment_table: str | None = text("resourceGroupAttachmentTable", None, _LOCATION)
    member_table: str | None = text("resourceGroupMemberTable", None, _LOCATION)
    limit_table: str | None = text("resourceGroupLimitTable", None, _LOCATION)
    usage_shards: int = integer("resourceGroupUsageShards", 64, 1)
    usage_retention_hours: int = integer("resourceGroupUsageRetentionHours", 24, 1)
    admin_tokens: tuple[str, ...] = secrets("resourceGroupAdminTokens")
    update_minus_one: MinusOne = choice("resourceGroupUpdateMinusOne", MinusOne.UNSET)

    def __post_init__(self) -> None:
        mistakes = []
        for name, setting in _SETTINGS.items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, _read(setting, value, _DEFAULTS[name]))
            except ValueError:
                mistakes.append(setting.mistake(value))
        if mistakes:
            raise ConfError([str(mistake) for mistake in mistakes])
        interval_s = self.transport_publish_interval_s
        self._default("epoch_ms", DEFAULT_EPOCH_MS if interval_s is None else interval_s * SECOND_MS)
        self._default("stale_report_ms", 2 * self.epoch_ms)

    def _default(self, name: str, value: int) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Settings from values by key; a missing key, and None, is the default.

        Keys without one of the prefixes are somebody else's and ignored. Raises ConfError with every unknown key and
        every value that is not allowed.
        """
        mistakes = list(mistakes_in(values))
        if mistakes:
            raise ConfError([str(mistake) for mistake in mistakes])
        given: dict[str, Any] = {
            name: values[setting.key] for name, setting in _SETTINGS.items() if values.get(setting.key) is not None
        }
        return cls(**given)

    def report_parameters(self) -> ReportParameters:
        """What decides about usage rows."""
        return ReportParameters(
            self.report_rule,
            self.suppress_rounds,
            self.tolerance_percent,
            self.event_min_interval_ms,
            self.event_change_percent,
        )

    def meter_parameters(self, *, demand_visible: bool = True) -> MeterParameters:
        """What a broker measures by. demand_visible: whether arrivals show demand."""
        return MeterParameters(self.epoch_ms, self.epoch_grace_ms, demand_visible, self.report_parameters())

    def map_parameters(self) -> MapParameters:
        """What a reader of usage goes by."""
        return MapParameters(
            self.epoch_ms,
            self.stale_report_ms,
            self.max_staleness_rounds,
            self.linger_rounds,
            self.suppress_rounds,
            self.membership is MembershipSource.TABLE,
        )

    def step_parameters(self) -> StepParameters:
        """What decides about limits."""
        return StepParameters(
            self.allocation_profile,
            self.allocation_mode,
            self.overshoot_percent,
            self.floor_percent,
            self.missing_claim_percent,
            self.dead_band_percent,
            self.silent_rounds,
        )

    def layout_mistakes(self, *, job_per_broker: bool) -> Iterator[Mistake]:
        """What these settings lack in a layout: without a usage table a broker's job has to know how many there are.

        One job for all brokers allocates from what it sees itself. Source: resource-groups 10.
        """
        if job_per_broker and self.usage_table is None and self.broker_count is None:
            remedy = f"set it to the number of brokers, or set {_SETTINGS['usage_table'].key}"
            yield Mistake(_SETTINGS["broker_count"].key, "nothing", "an integer from 1 without a usage table", remedy)


_SETTINGS: dict[str, Setting] = {field.name: field.metadata["setting"] for field in fields(QuotaSettings)}
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(QuotaSettings)}
KEYS = tuple(setting.key for setting in _SETTINGS.values())


def mistakes_in(values: Mapping[str, object]) -> Iterator[Mistake]:
    """Every unknown key with one of the prefixes, and every value that is not allowed, in the order of `values`."""
    by_key = {setting.key: (setting, _DEFAULTS[name]) for name, setting in _SETTINGS.items()}
    for key, value in values.items():
        if key in by_key:
            setting, default = by_key[key]
            try:
                if value is not None:
                    _read(setting, value, default)
            except ValueError:
                yield setting.mistake(value)
        elif key.startswith(PREFIXES):
            yield Mistake(key, "an unknown key", ", ".join(sorted(KEYS)), "correct the name, or remove the line")


def warnings_in(values: Mapping[str, object]) -> Iterator[str]:
    """What is accepted without effect, and what has one that is easily missed."""
    if values.get(_TRANSPORT):
        yield f"{_TRANSPORT}: ignored, the usage table is the transport"
    for name in ("topic_division", "topic_shards"):
        key = _SETTINGS[name].key
        if values.get(key):
            yield f"{key}: read, but without effect yet: topics of a group share its limit on a broker as they come"
    membership = _SETTINGS["membership"].key
    if values.get(membership) == MembershipSource.REPORTS:
        yield (
            f"{membership}={MembershipSource.REPORTS}: a broker that is not heard is not known to be there, so brokers "
            "that cannot hear each other may each take the whole quota"
        )


def _read(setting: Setting, value: object, default: object) -> object:
    return None if value is None and default is None else setting.read(value)
