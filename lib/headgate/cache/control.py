"""Rows of the table `cache_control`: what conf files said and from when on, and times."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.core.cache.settings import CacheSettings, Mode, PolicyName, difference
from headgate.errors import ConfError

MICROSECOND = timedelta(microseconds=1)


def check_streaming(values: Mapping[str, Any]) -> None:
    """Return if the job can run with these values of broker.conf.

    Raises ConfError for the policy belady, which knows the future, and for mode horizon, which is of
    `headgate conformance` alone.
    """
    settings = CacheSettings.of(values)
    if settings.mode is Mode.HORIZON:
        mistake = (
            "broker.conf: headgate.cache.mode: got horizon, which no job runs; allowed: exact; "
            "set it to exact, or leave the key out"
        )
        raise ConfError([mistake])
    if settings.policy is PolicyName.BELADY:
        others = ", ".join(policy for policy in PolicyName if policy is not PolicyName.BELADY)
        mistake = (
            f"broker.conf: headgate.cache.policy: got belady, which knows the future, in a streaming job; "
            f"allowed: {others}; choose another one, or replay recorded rows"
        )
        raise ConfError([mistake])


def conf_row(rows: Iterable[Mapping[str, Any]], values: Mapping[str, Any], high: datetime | None) -> dict[str, Any]:
    """What to append as a job starts: the values that caches begin with, or what has changed since; empty: nothing.

    rows: those of `cache_control`; high: the highest event time that the tables tell of. A change holds from the
    next microsecond on: no row that was told of is behind it, and it is the same whenever the job hears of it.
    Raises ConfError for a key that changed and may not while the checkpoint lives.
    """
    confs = sorted((row for row in rows if row["kind"] == "conf"), key=lambda row: row["written_at"])
    if not confs:
        return _conf(values, values, None)
    before = json.loads(confs[-1]["conf"])
    changed = difference(before, values)
    if changed.fixed:
        raise ConfError([_fixed(key, before, values) for key in changed.fixed])
    if not changed.dynamic:
        return {}
    times = [row["event_time"] for row in confs if row["event_time"] is not None]
    next_us = datetime.fromtimestamp(0, UTC) if high is None else high + MICROSECOND
    return _conf(values, changed.dynamic, max([next_us, *times]))


def tick_row(at: datetime | None, *, finish: bool = False) -> dict[str, Any]:
    """A time that all brokers have come to; None: they only tell how far they are."""
    return {"kind": "tick", "event_time": at, "finish": finish, "written_at": datetime.now(UTC)}


def _conf(values: Mapping[str, Any], changes: Mapping[str, Any], at: datetime | None) -> dict[str, Any]:
    texts = {"conf": json.dumps(dict(values)), "changes": json.dumps(dict(changes))}
    return {"kind": "conf", "event_time": at, **texts, "written_at": datetime.now(UTC)}


def _fixed(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    was, now = (values.get(key, "the default") for values in (before, after))
    return (
        f"broker.conf: {key}: got {now}, the checkpoint was begun with {was}; allowed: no change while it lives; "
        "set it back, or start with a new --checkpoint and --output"
    )
