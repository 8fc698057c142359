"""What a conf folder makes of a replay: keys, delays, what is in force; several folders and their mistakes."""

import argparse

import pytest

from headgate.errors import ConfError, InputError
from headgate.replay.arguments import add_replay_arguments
from headgate.replay.asked import asked
from headgate.replay.folders import folder_warnings, load_folders
from headgate.replay.plan import Keys, checked_plans
from unit.replay.scenes import conf_in, events, plan_in, publish

TOPIC_OF_ITS_OWN = {
    "resourcegroups": {"gold": {"publishRateInMsgs": 100}, "iron": {"publishRateInMsgs": 10}},
    "tenants": {"acme": "gold"},
    "topics": {"persistent://acme/shop/own": "iron"},
}
BROKER_LIMIT = {"brokerPublisherThrottlingMaxMessageRate": 50}


def keys_in(folder, **files):
    rows = events(
        [publish(0, "a"), publish(1, "b"), publish(2, "a", tenant="other"), publish(3, "b", name="own-partition-7")]
    )
    return Keys(plan_in(folder, **files)).of(rows).to_pylist()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"groups": TOPIC_OF_ITS_OWN}, ["group gold", "group gold", "broker a", "group iron"]),
        ({"groups": {}}, ["broker a", "broker b", "broker a", "broker b"]),
        ({"groups": {}, "broker": BROKER_LIMIT}, ["broker a", "broker b", "broker a", "broker b"]),
        ({"groups": TOPIC_OF_ITS_OWN, "broker": BROKER_LIMIT}, ["everything"] * 4),
    ],
)
def test_what_shares_a_limiter_shares_a_key(tmp_path, files, expected):
    assert expected == keys_in(tmp_path, **files)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", (1000, 1000)),
        ("[trigger]\ninterval_ms = 500\n", (500, 500)),
        ("[trigger]\ninterval_ms = 0\n", (1000, 1000)),
        ("[trigger]\ninterval_ms = 60000\n", (60_000, 2000)),
    ],
)
def test_rounds_and_delays_are_those_of_the_live_job(tmp_path, settings, expected):
    plan = plan_in(tmp_path, settings=settings, delay_ms=None)
    assert expected == (plan.round_ms, plan.delay_ms)


def test_a_folder_for_a_job_on_kafka_reads_recorded_files_by_their_names(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("event_time,seq,broker,kind\n")
    conf_in(tmp_path / "conf", settings="[input]\nformat = 'kafka'\n")
    parser = argparse.ArgumentParser()
    add_replay_arguments(parser)
    places = ("--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out", "--conf-dir", f"{tmp_path}/conf")
    assert asked(parser.parse_args(places)).job.format == "csv"
    (tmp_path / "in" / "a.csv").write_text("seq,broker\n")
    with pytest.raises(InputError, match="columns missing: event_time, kind"):
        asked(parser.parse_args(places))
    (tmp_path / "in" / "a.csv").rename(tmp_path / "in" / "a.txt")
    assert asked(parser.parse_args(places)).job.format == "json"
    conf_in(tmp_path / "conf", settings="[input]\nformat = 'parquet'\n")
    assert asked(parser.parse_args(places)).job.format == "parquet"


def test_the_folder_does_not_decide_what_rows_mean(tmp_path):
    settings = "[operator]\ntraffic = 'admitted'\n[input]\nhold_back_ms = 500\n"
    plan = plan_in(tmp_path, settings=settings, traffic="offered")
    assert (True, 0) == (plan.rules.offered, plan.rules.hold_back_ms)


def test_a_delay_with_which_no_report_would_count_is_refused_for_every_folder(tmp_path):
    confs = {name: conf_in(tmp_path / name) for name in "ab"}
    with pytest.raises(ConfError) as raised:
        checked_plans(confs, traffic="offered", delay_ms=2001)
    assert ["a: --delay-ms: got 2001", "b: --delay-ms: got 2001"] == [
        one.partition(";")[0] for one in raised.value.mistakes
    ]


def test_folders_are_told_apart_by_their_names(tmp_path):
    for name in ("a", "b", "c/a"):
        conf_in(tmp_path / name)
    assert ["a", "b"] == list(load_folders([f"{tmp_path}/a/", f"{tmp_path}/b"]))
    with pytest.raises(ConfError, match="the name a a second time"):
        load_folders([f"{tmp_path}/a", f"{tmp_path}/c/a"])


def test_another_span_of_time_than_the_first_folder_has_is_warned_of(tmp_path):
    conf_in(tmp_path / "a")
    conf_in(tmp_path / "b", settings="[input]\nevent_time_from = '2020-01-01T00:00:00Z'\n")
    (warning,) = folder_warnings(load_folders([str(tmp_path / name) for name in "ab"]))
    assert warning == "b: [input] event_time_from and event_time_until of a hold for all folders"
