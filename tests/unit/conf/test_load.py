"""A conf directory is loaded as a whole: defaults for what is missing, all mistakes at once, limits as flat rows."""

import json
import os
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from headgate.conf import (
    BROKER_KEYS,
    AttachmentRow,
    BrokerConf,
    Conf,
    ConnectionLimitRow,
    DispatchRate,
    LevelLimitRow,
    LimitRow,
    Policies,
    PublishRate,
    RatePolicies,
    ResourceGroup,
    ResourceGroups,
    Settings,
    UnloadLimitRow,
    check_streaming,
    connection_limits,
    group_attachments,
    level_limits,
    load_conf,
    publish_limits,
    reference,
    unload_limits,
)
from headgate.errors import AwayError, ConfError
from unit.conf.page import documented_defaults

ROOT = Path(__file__).parents[3]


@pytest.fixture
def conf_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose files are named `conf/...` in messages."""
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    return Path("conf")


def mistakes_of(conf_dir: Path) -> tuple[str, ...]:
    with pytest.raises(ConfError) as error:
        load_conf(conf_dir)
    return error.value.mistakes


def test_an_empty_directory_is_the_default(conf_dir: Path) -> None:
    assert Conf() == load_conf(conf_dir)


def test_empty_files_are_the_default(conf_dir: Path) -> None:
    for name, content in {"headgate.toml": "", "broker.conf": "", "policies.json": "{}"}.items():
        (conf_dir / name).write_text(content)
    (conf_dir / "resource-groups.json").write_bytes(b"\xef\xbb\xbf{}")
    assert Conf() == load_conf(str(conf_dir))


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_missing_directory_is_an_error(conf_dir: Path, name: str) -> None:
    (conf_dir / "file").touch()
    assert (
        (
            f"conf/{name}: got no directory; allowed: one with headgate.toml, broker.conf, policies.json, "
            "resource-groups.json, each optional; correct --conf-dir"
        ),
    ) == mistakes_of(conf_dir / name)


def test_all_mistakes_of_all_files_are_reported_at_once(conf_dir: Path) -> None:
    (conf_dir / "headgate.toml").write_text("[operator]\nslots = 0\n[trigger]\ninterval_ms = -1\n")
    (conf_dir / "broker.conf").write_text("numIOThreads=x\nheadgateFoo=1\n")
    (conf_dir / "policies.json").write_text('{"topics": {"x": {}, "y": {}}}')
    (conf_dir / "resource-groups.json").write_text('{\n"tenants": {"a": "gold"}}')
    assert [mistake.split(": got")[0] for mistake in mistakes_of(conf_dir)] == [
        "conf/headgate.toml line 2: operator.slots",
        "conf/headgate.toml line 4: trigger.interval_ms",
        "conf/broker.conf line 1: numIOThreads",
        "conf/broker.conf line 2: headgateFoo",
        "conf/policies.json line 1: topics.x",
        "conf/policies.json line 1: topics.y",
        "conf/resource-groups.json line 2: tenants.a",
    ]


@pytest.mark.parametrize(
    ("unreadable", "got"),
    [("1" * 5000, "a number of thousands of digits"), ("[" * 100_000, "brackets thousands deep")],
    ids=["digits", "brackets"],
)
def test_files_that_cannot_be_read_are_mistakes(conf_dir: Path, unreadable: str, got: str) -> None:
    (conf_dir / "headgate.toml").write_bytes(b"\n# \xff\n")
    (conf_dir / "policies.json").mkdir()
    (conf_dir / "broker.conf").symlink_to("/gone/broker.conf")
    (conf_dir / "resource-groups.json").write_text(unreadable)
    assert mistakes_of(conf_dir) == (
        "conf/headgate.toml line 2: got bytes that are not UTF-8; allowed: UTF-8; save the file as UTF-8",
        (
            "conf/broker.conf: got a link to /gone/broker.conf, where nothing is; allowed: a readable file; "
            "correct it, or remove it"
        ),
        "conf/policies.json: got Is a directory; allowed: a readable file; correct it, or remove it",
        f"conf/resource-groups.json: got {got}; allowed: a JSON object; correct the syntax",
    )


def test_a_pipe_is_not_waited_for(conf_dir: Path) -> None:
    os.mkfifo(conf_dir / "policies.json")
    assert mistakes_of(conf_dir) == (
        "conf/policies.json: got a pipe; allowed: a readable file; correct it, or remove it",
    )


def test_warnings_are_kept_for_the_job_to_print(conf_dir: Path) -> None:
    (conf_dir / "broker.conf").write_text("numIoThreads=8\n")
    assert load_conf(conf_dir).warnings == (
        "conf/broker.conf line 1: numIoThreads: headgate does not read this key; if numIOThreads is meant, correct it",
    )


def test_a_key_of_resource_groups_that_does_not_exist_is_refused_with_the_nearest_one(conf_dir: Path) -> None:
    (conf_dir / "broker.conf").write_text("\nresourceGroupEpochMilis=500\n")
    (mistake,) = mistakes_of(conf_dir)
    assert mistake.startswith("conf/broker.conf line 2: resourceGroupEpochMilis: got an unknown key; allowed: ")
    assert mistake.endswith("; did you mean resourceGroupEpochMillis?")


def test_limits_that_no_job_enforces_are_told_of(conf_dir: Path) -> None:
    (conf_dir / "broker.conf").write_text(
        "maxPublishRatePerTopicInMessages=5\ndispatchThrottlingRatePerTopicInMsg=50\ndispatchThrottlingRateInByte=0\n"
        "subscribeThrottlingRatePerConsumer=3\npulsarChannelPauseReceivingRequestsIfUnwritable=true\n"
        "headgateDispatchReserveThenSettle=true\n"
    )
    rates = {"dispatchRate": {"dispatchThrottlingRateInMsg": 5}}
    (conf_dir / "policies.json").write_text(json.dumps({"namespaces": {"a/b": rates}}))
    assert load_conf(conf_dir).warnings == (
        "conf/broker.conf: read, but not enforced yet: headgateDispatchReserveThenSettle",
    )


def test_what_holds_connections_is_one_row_in_which_0_is_off(conf_dir: Path) -> None:
    assert [ConnectionLimitRow(1000, 0, 0, False, 5000, 5, 10)] == connection_limits(load_conf(conf_dir))
    (conf_dir / "broker.conf").write_text(
        "maxPendingPublishRequestsPerConnection=-1\nmaxMessagePublishBufferSizeInMB=9\nnumIOThreads=2\n"
        "pulsarChannelPauseReceivingRequestsIfUnwritable=true\npulsarChannelPauseReceivingCooldownMs=-7\n"
    )
    assert [ConnectionLimitRow(0, 9, 2, True, 0, 5, 10)] == connection_limits(load_conf(conf_dir))


def test_conf_is_frozen_and_survives_pickling(conf_dir: Path) -> None:
    conf = load_conf(ROOT / "conf")
    with pytest.raises(FrozenInstanceError):
        conf.broker = BrokerConf()  # type: ignore[misc]
    assert conf == pickle.loads(pickle.dumps(conf))


SHARED = 'write state_key = "auto", or remove them'


def test_state_by_topic_is_refused_where_topics_share_a_limit(conf_dir: Path) -> None:
    (conf_dir / "headgate.toml").write_text('[operator]\nstate_key = "topic"\n')
    (conf_dir / "broker.conf").write_text("brokerPublisherThrottlingMaxByteRate=5\ndispatchThrottlingRateInMsg=6\n")
    (conf_dir / "resource-groups.json").write_text(
        '{"resourcegroups": {"gold": {"dispatchRateInMsgs": 7}, "free": {}}, "tenants": {"acme": "free"}}'
    )
    assert (
        (
            "conf/headgate.toml: operator.state_key: got 'topic' with limits and groups that topics share: "
            "brokerPublisherThrottlingMaxByteRate=5, dispatchThrottlingRateInMsg=6, resourcegroups.gold, tenants.acme; "
            f"allowed: auto; {SHARED}"
        ),
    ) == mistakes_of(conf_dir)


def test_state_by_topic_is_accepted_with_limits_of_single_topics(conf_dir: Path) -> None:
    (conf_dir / "headgate.toml").write_text('[operator]\nstate_key = "topic"\n')
    (conf_dir / "broker.conf").write_text("maxPublishRatePerTopicInBytes=5\n")
    assert load_conf(conf_dir).settings.operator.state_key == "topic"


@pytest.mark.parametrize(("factory", "is_refused"), [("dispatchRateLimiterFactoryClassName=", True), ("", False)])
def test_a_dispatch_period_below_1_s_is_refused_with_the_classic_limiter(
    conf_dir: Path, factory: str, is_refused: bool
) -> None:
    (conf_dir / "broker.conf").write_text(factory)
    (conf_dir / "policies.json").write_text('{"namespaces": {"a/b": {"dispatchRate": {"ratePeriodInSecond": 0}}}}')
    expected = (
        (
            'conf/policies.json: namespaces."a/b": got ratePeriodInSecond 0; allowed: from 1 with the classic dispatch '
            "limiter; correct it, or select the token bucket with dispatchRateLimiterFactoryClassName"
        ),
    )
    if is_refused:
        assert expected == mistakes_of(conf_dir)
    else:
        load_conf(conf_dir)


def test_streaming_jobs_refuse_the_leap_tolerant_clock() -> None:
    with pytest.raises(ConfError) as error:
        check_streaming(Conf(broker=BrokerConf(clock_policy="leap_tolerant")))
    assert error.value.mistakes == (
        (
            "broker.conf: headgateClockPolicy: got leap_tolerant in a streaming job, which orders rows by event time; "
            "allowed: high_water; write headgateClockPolicy=high_water, or remove the line"
        ),
    )
    check_streaming(Conf())


def test_limit_rows_are_complete_and_in_a_stable_order() -> None:
    conf = Conf(
        broker=BrokerConf(
            topic_publish_rate_messages_per_s=1,
            topic_publish_rate_bytes_per_s=2,
            broker_publish_rate_messages_per_s=3,
            broker_publish_rate_bytes_per_s=4,
        ),
        policies=Policies(
            namespaces={
                "b/n": RatePolicies(publish=PublishRate(5, 6)),
                "a/n": RatePolicies(publish=PublishRate()),
                "c/n": RatePolicies(),
            },
            topics={"persistent://a/n/t": RatePolicies(publish=PublishRate(7, 0))},
        ),
        resource_groups=ResourceGroups(
            {"silver": ResourceGroup(8, 0), "gold": ResourceGroup(None, 2**60), "free": ResourceGroup()}
        ),
    )
    assert [
        LimitRow("default", "", 1, 2),
        LimitRow("namespace", "a/n", 0, 0),
        LimitRow("namespace", "b/n", 5, 6),
        LimitRow("topic", "persistent://a/n/t", 7, 0),
        LimitRow("broker", "", 3, 4),
        LimitRow("group", "free", None, None),
        LimitRow("group", "gold", None, 2**53 - 1),
        LimitRow("group", "silver", 8, 0),
    ] == publish_limits(conf)


def test_attachments_are_rows_by_scope_and_name() -> None:
    conf = Conf(resource_groups=ResourceGroups({}, {"t": "g", "a": "h"}, {"t/n": "g"}, {"persistent://t/n/x": "g"}))
    assert [
        AttachmentRow("tenant", "a", "h"),
        AttachmentRow("tenant", "t", "g"),
        AttachmentRow("namespace", "t/n", "g"),
        AttachmentRow("topic", "persistent://t/n/x", "g"),
    ] == group_attachments(conf)


def test_the_limit_of_unloads_is_one_row_for_every_broker(conf_dir: Path) -> None:
    assert [UnloadLimitRow("broker", "", 0, 60_000)] == unload_limits(Conf())
    (conf_dir / "broker.conf").write_text("maxConcurrentUnload=3\nnamespaceBundleUnloadingTimeoutMs=500\n")
    conf = load_conf(conf_dir)

    assert [UnloadLimitRow("broker", "", 3, 500)] == unload_limits(conf)
    assert conf.warnings == ()


LEVELS_OFF = [
    LevelLimitRow("dispatch", "broker", "", 0, 0),
    *(LevelLimitRow(level, "default", "", 0, 0) for level in ("dispatch", "subscription", "replicator")),
]


def test_levels_without_limits_have_the_broker_and_their_defaults_which_are_off() -> None:
    assert LEVELS_OFF == level_limits(Conf())


def test_limits_of_levels_are_rows_of_the_broker_then_by_level_default_and_names() -> None:
    conf = Conf(
        broker=BrokerConf(
            broker_dispatch_rate_messages_per_s=1,
            topic_dispatch_rate_bytes_per_s=2,
            subscription_dispatch_rate_messages_per_s=3,
            replicator_dispatch_rate_bytes_per_s=4,
            dispatch_rate_relative_to_publish_rate=True,
        ),
        policies=Policies(
            namespaces={
                "b/n": RatePolicies(dispatch=DispatchRate(5, 6, relative_to_publish_rate=True, period_s=7)),
                "a/n": RatePolicies(dispatch=DispatchRate(), subscription_dispatch=DispatchRate(8, 0, period_s=0)),
            },
            topics={"persistent://a/n/t": RatePolicies(replicator_dispatch=DispatchRate(0, 9))},
        ),
    )
    assert [
        LevelLimitRow("dispatch", "broker", "", 1, 0),
        LevelLimitRow("dispatch", "default", "", 0, 2, relative=True),
        LevelLimitRow("dispatch", "namespace", "a/n", 0, 0),
        LevelLimitRow("dispatch", "namespace", "b/n", 5, 6, 7, relative=True),
        LevelLimitRow("subscription", "default", "", 3, 0, relative=True),
        LevelLimitRow("subscription", "namespace", "a/n", 8, 0),
        LevelLimitRow("replicator", "default", "", 0, 4, relative=True),
        LevelLimitRow("replicator", "topic", "persistent://a/n/t", 0, 9),
    ] == level_limits(conf)


def test_without_files_the_default_and_the_broker_are_off() -> None:
    assert [LimitRow("default", "", 0, 0), LimitRow("broker", "", 0, 0)] == publish_limits(Conf())


def test_the_shipped_conf_loads_without_a_warning_and_limits_all_five_tenants() -> None:
    conf = load_conf(ROOT / "conf")
    assert conf.warnings == ()
    assert Settings() == conf.settings
    assert conf.resource_groups.tenants == {
        "acme": "gold",
        "globex": "silver",
        "initech": "silver",
        "umbrella": "bronze",
        "hooli": "bronze",
    }
    assert list(conf.policies.namespaces) == ["hooli/ads"]
    assert conf.broker.topic_publish_rate_messages_per_s > 0


def test_the_shipped_broker_conf_names_every_key() -> None:
    shipped = (ROOT / "conf" / "broker.conf").read_text("utf-8")
    assert set(BROKER_KEYS) <= set(re.findall(r"^(\w+)=", shipped, re.MULTILINE))


def test_the_documentations_example_is_what_is_printed(conf_dir: Path) -> None:
    edits = {
        "headgate.toml": (r"^hold_back_ms = \d+$", "hold_back_ms = -1"),
        "broker.conf": (r"^maxPublishRatePerTopicInMessages=\d+$", "maxPublishRatePerTopicInMessages=1k"),
    }
    for name, (pattern, edited) in edits.items():
        shipped = (ROOT / "conf" / name).read_text("utf-8")
        (conf_dir / name).write_text(re.sub(pattern, edited, shipped, flags=re.MULTILINE))
    with pytest.raises(ConfError) as error:
        load_conf(conf_dir)
    assert f"```\n{error.value}\n```" in (ROOT / "docs" / "configuration.md").read_text("utf-8")


def test_the_documentation_has_every_key_with_its_default() -> None:
    documented = documented_defaults()
    assert {name: key.default or "not set" for name, key in BROKER_KEYS.items()} == {
        name: default for name, default in documented.items() if name in BROKER_KEYS
    }


def test_the_shipped_file_and_the_page_are_made_of_the_settings() -> None:
    """`python -m headgate.conf.reference` makes them anew."""
    assert reference.FILE.read_text("utf-8") == reference.shipped_file()
    page = reference.PAGE.read_text("utf-8")
    assert page == reference.page_with_rows(page)
    assert page.count(reference.page_rows()) == 1
    assert load_conf(reference.FILE.parent).settings == Settings()


def test_a_file_whose_name_is_nearly_that_of_a_conf_file_is_told_of(tmp_path) -> None:
    of_others = ("cluster.toml", "spark-defaults.conf")
    for name in ("resource_groups.json", "policy.json", "Broker.conf", "cluster.json", *of_others):
        (tmp_path / name).write_text("{}")
    read = "allowed: headgate.toml, broker.conf, policies.json, resource-groups.json"
    meant = {
        "Broker.conf": "broker.conf",
        "policy.json": "policies.json",
        "resource_groups.json": "resource-groups.json",
    }
    remedies = {name: f"rename it to {right}" for name, right in meant.items()}
    remedies["cluster.json"] = "rename it, or move it elsewhere"
    expected = tuple(f"{tmp_path / name} is not read; {read}; {remedies[name]}" for name in sorted(remedies))
    assert expected == load_conf(tmp_path).warnings
    with pytest.raises(ConfError, match=r"policy\.json is not read"):
        load_conf(tmp_path, strict=True)
    for name in meant.values():
        (tmp_path / name).touch()
    (tmp_path / "cluster.json").unlink()
    assert not any("is not read" in str(warning) for warning in _warnings(tmp_path))


def _warnings(folder) -> list[str]:
    try:
        return list(load_conf(folder).warnings)
    except ConfError as error:
        return [*error.mistakes, *error.warnings]


@pytest.mark.usefixtures("no_store")
def test_a_store_that_does_not_answer_is_no_mistake_in_the_configuration():
    with pytest.raises(AwayError, match=r"^--conf-dir: s3a://b/conf cannot be reached: .*NETWORK_CONNECTION"):
        load_conf("s3a://b/conf")


def test_a_store_that_goes_away_between_two_files_is_no_mistake_either(tmp_path, monkeypatch):
    (tmp_path / "broker.conf").touch()
    away = OSError("When reading: AWS Error SLOW_DOWN during GetObject operation: So it is.")
    monkeypatch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(away))
    with pytest.raises(AwayError, match=r"^\S+/headgate.toml cannot be reached: .*SLOW_DOWN"):
        load_conf(tmp_path)
