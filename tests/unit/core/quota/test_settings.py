"""Settings of resource groups: defaults, ranges, every mistake at once (resource-groups 14)."""

import pytest

from headgate.core.quota.settings import KEYS, QuotaSettings, mistakes_in, warnings_in
from headgate.errors import ConfError

INT32_MAX = 2**31 - 1
DEFAULTS = {
    "transport_class_name": "",
    "transport_publish_interval_s": None,
    "epoch_ms": 1000,
    "epoch_grace_ms": 0,
    "tolerance_percent": 5,
    "suppress_rounds": 5,
    "report_rule": "headgate",
    "event_min_interval_ms": 100,
    "event_change_percent": 10,
    "stale_report_ms": 2000,
    "max_staleness_rounds": 3,
    "linger_rounds": 60,
    "allocation_profile": "max_min",
    "allocation_mode": "fast",
    "overshoot_percent": 5,
    "floor_percent": 5,
    "missing_claim_percent": 20,
    "dead_band_percent": 0,
    "silent_rounds": 8,
    "couple_dimensions": False,
    "topic_division": "max_min",
    "topic_shards": 16,
    "broker_weight": 1,
    "membership": "table",
    "broker_count": None,
    "usage_table": None,
    "group_table": None,
    "attachment_table": None,
    "member_table": None,
    "limit_table": None,
    "usage_shards": 64,
    "usage_retention_hours": 24,
    "admin_tokens": (),
    "update_minus_one": "unset",
}
RANGES = [
    ("resourceUsageTransportPublishIntervalInSecs", 1, INT32_MAX // 1000),
    ("resourceGroupEpochMillis", 1, INT32_MAX),
    ("resourceGroupEpochGraceMillis", 0, INT32_MAX),
    ("resourceUsageReportSuppressionTolerancePercentage", 0, INT32_MAX),
    ("resourceUsageMaxUsageReportSuppressRounds", -INT32_MAX - 1, INT32_MAX),
    ("resourceGroupEventMinIntervalMillis", 1, INT32_MAX),
    ("resourceGroupEventChangePercent", 0, INT32_MAX),
    ("resourceGroupStaleReportMillis", 0, INT32_MAX),
    ("resourceGroupMaxStalenessRounds", 1, INT32_MAX),
    ("resourceGroupLingerRounds", 0, INT32_MAX),
    ("resourceGroupOvershootPercent", 0, 100),
    ("resourceGroupFloorPercent", 0, 100),
    ("resourceGroupMissingClaimPercent", 0, 100),
    ("resourceGroupDeadBandPercent", 0, 100),
    ("resourceGroupSilentRounds", 2, INT32_MAX),
    ("resourceGroupTopicShards", 1, 1000),
    ("resourceGroupBrokerWeight", 1, 1000),
    ("resourceGroupBrokerCount", 1, INT32_MAX),
    ("resourceGroupUsageShards", 1, INT32_MAX),
    ("resourceGroupUsageRetentionHours", 1, INT32_MAX),
]


def mistakes(values):
    return [mistake.key for mistake in mistakes_in(values)]


def test_without_values_everything_has_its_default():
    assert DEFAULTS == {name: getattr(QuotaSettings.of({}), name) for name in DEFAULTS}
    assert len(DEFAULTS) == len(KEYS)


def test_null_is_the_default_and_keys_of_others_are_ignored():
    values = dict.fromkeys(KEYS) | {"brokerClientTlsEnabled": "yes", "resource": 1}

    assert QuotaSettings() == QuotaSettings.of(values)


@pytest.mark.parametrize(
    ("values", "epoch_ms", "stale_ms"),
    [
        ({"resourceUsageTransportPublishIntervalInSecs": 60}, 60_000, 120_000),
        ({"resourceUsageTransportPublishIntervalInSecs": 60, "resourceGroupEpochMillis": 500}, 500, 1000),
        ({"resourceGroupEpochMillis": 250}, 250, 500),
        ({"resourceGroupStaleReportMillis": 7}, 1000, 7),
        ({"resourceGroupStaleReportMillis": 0}, 1000, 0),
    ],
)
def test_the_epoch_follows_from_pulsars_interval_and_the_stale_time_from_the_epoch(values, epoch_ms, stale_ms):
    settings = QuotaSettings.of(values)

    assert (epoch_ms, stale_ms) == (settings.epoch_ms, settings.stale_report_ms)


@pytest.mark.parametrize(("key", "low", "high"), RANGES)
def test_integers_have_ranges(key, low, high):
    assert [[], []] == [mistakes({key: value}) for value in (low, high)]
    assert [[key]] * 5 == [mistakes({key: value}) for value in (low - 1, high + 1, str(low), float(low), True)]


@pytest.mark.parametrize(
    ("key", "allowed", "refused"),
    [
        ("resourceGroupReportRule", ["headgate", "pulsar"], ["Headgate", "", 1]),
        ("resourceGroupAllocationProfile", ["max_min", "pulsar", "pip82_steal"], ["even", 0]),
        ("resourceGroupAllocationMode", ["fast", "strict"], ["gated"]),
        ("resourceGroupCoupleDimensions", [True, False], ["true", 1, 0]),
        ("resourceGroupTopicDivision", ["max_min", "even", "proportional"], ["pulsar"]),
        ("resourceGroupMembership", ["table", "reports"], ["none"]),
        ("resourceGroupUpdateMinusOne", ["unset", "keep"], ["UNSET", -1]),
        ("resourceGroupUsageTable", ["/tables/usage"], ["", 7]),
        ("resourceUsageTransportClassName", ["", "org.apache.X"], [7]),
        ("resourceGroupAdminTokens", [["a"], ("a", "b"), []], ["a", [""], [" a"], [7], {"a": 1}]),
    ],
)
def test_other_values_are_of_a_few_forms(key, allowed, refused):
    assert [[]] * len(allowed) == [mistakes({key: value}) for value in allowed]
    assert [[key]] * len(refused) == [mistakes({key: value}) for value in refused]


def test_all_mistakes_are_reported_at_once_with_what_was_got_and_what_is_allowed():
    values = {
        "resourceGroupEpochMillis": 0,
        "resourceGroupEpochMilis": 1000,
        "resourceUsageX": 1,
        "resourceGroupAllocationMode": "quick",
        "resourceGroupFloorPercent": 5,
    }

    with pytest.raises(ConfError) as refused:
        QuotaSettings.of(values)

    assert list(values)[:4] == [mistake.partition(":")[0] for mistake in refused.value.mistakes]
    assert refused.value.mistakes[0].startswith(
        "resourceGroupEpochMillis: got 0; allowed: an integer from 1 to 2147483647; correct it, or remove the line"
    )
    assert refused.value.mistakes[3] == (
        "resourceGroupAllocationMode: got 'quick'; allowed: fast or strict; "
        "correct it, or remove the line for the default (fast)"
    )


def test_fields_are_checked_as_keys_are():
    with pytest.raises(ConfError) as refused:
        QuotaSettings(epoch_ms=0, allocation_mode="quick", silent_rounds=1)

    assert 3 == len(refused.value.mistakes)


def test_tokens_are_never_shown():
    shown = repr(QuotaSettings(admin_tokens=("s3cret",)))
    (mistake,) = mistakes_in({"resourceGroupAdminTokens": "s3cret"})

    assert "s3cret" not in shown + str(mistake)


def test_pulsars_transport_is_accepted_with_a_warning():
    assert ["resourceUsageTransportClassName: ignored, the usage table is the transport"] == list(
        warnings_in({"resourceUsageTransportClassName": "org.apache.X", "resourceGroupEpochMillis": 5})
    )
    assert [] == list(warnings_in({"resourceUsageTransportClassName": ""}))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("resourceGroupMembership", "reports", "may each take the whole quota"),
        ("resourceGroupTopicDivision", "even", "without effect yet"),
        ("resourceGroupTopicShards", 4, "without effect yet"),
    ],
)
def test_what_is_easily_missed_is_accepted_with_a_warning(key, value, said):
    (warning,) = warnings_in({key: value})

    assert [] == list(mistakes_in({key: value}))
    assert warning.startswith(key)
    assert said in warning
    assert [] == list(warnings_in({"resourceGroupMembership": "table"}))


@pytest.mark.parametrize(
    ("settings", "job_per_broker", "keys"),
    [
        (QuotaSettings(), True, ["resourceGroupBrokerCount"]),
        (QuotaSettings(), False, []),
        (QuotaSettings(broker_count=3), True, []),
        (QuotaSettings(usage_table="usage"), True, []),
    ],
)
def test_without_a_usage_table_a_job_of_one_broker_must_know_how_many_there_are(settings, job_per_broker, keys):
    assert keys == [mistake.key for mistake in settings.layout_mistakes(job_per_broker=job_per_broker)]


def test_parameters_of_the_parts_are_taken_from_the_settings():
    settings = QuotaSettings(epoch_ms=250, epoch_grace_ms=10, linger_rounds=7, floor_percent=9, membership="reports")

    assert (250, 10, False) == (
        settings.meter_parameters(demand_visible=False).epoch_ms,
        settings.meter_parameters(demand_visible=False).grace_ms,
        settings.meter_parameters(demand_visible=False).demand_visible,
    )
    assert (250, 500, 7, False) == (
        settings.map_parameters().epoch_ms,
        settings.map_parameters().stale_ms,
        settings.map_parameters().linger_rounds,
        settings.map_parameters().members_listed,
    )
    assert 9 == settings.step_parameters().floor_percent
