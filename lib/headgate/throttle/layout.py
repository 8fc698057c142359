"""What a checkpoint's state depends on: chosen at the first start, kept in the control table, the same ever after."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.conf import Conf, group_attachments
from headgate.core.quota.usage.usage_report import MeterParameters
from headgate.errors import StateError
from headgate.throttle.form import Rules
from headgate.throttle.limits.control import FROM_THE_START, JOB, control_row
from headgate.throttle.routing import Routing
from headgate.throttle.state import VERSION

LAYOUT = "layout"
KEYS = {
    "max_debt_ms": "headgateMaxDebtMs",
    "release_quantum": "headgateReleaseQuantum",
    "classic": "classic limiter (dispatchRateLimiterFactoryClassName)",
    "charges_entries": "dispatchThrottlingOnBatchMessageEnabled",
    "throttles_caught_up": "dispatchThrottlingOnNonBacklogConsumerEnabled",
    "filtered_entries": "dispatchThrottlingForFilteredEntriesEnabled",
    "stats_interval_s": "statsUpdateFrequencyInSecs",
}
"""Keys of broker.conf that parts of a layout come from; the others have the names of headgate.toml."""


@dataclass(frozen=True)
class Layout:
    """Settings that a restart on the same checkpoint cannot change."""

    version: int
    state_key: str
    slots: int
    whole_brokers: bool
    traffic: str
    max_debt_ms: int
    release_quantum: int
    send_timeout_ms: int
    hold_back_ms: int
    classic: bool
    charges_entries: bool
    throttles_caught_up: bool
    filtered_entries: bool
    stats_interval_s: int


def layout_of(conf: Conf, *, whole_brokers: bool = False) -> Layout:
    """The layout that `conf` wants. A broker stays whole if its topics share a limiter, or if the caller says so."""
    broker, operator = conf.broker, conf.settings.operator
    of_broker = (
        *(broker.broker_publish_rate_messages_per_s, broker.broker_publish_rate_bytes_per_s),
        *(broker.broker_dispatch_rate_messages_per_s, broker.broker_dispatch_rate_bytes_per_s),
    )
    return Layout(
        version=VERSION,
        state_key=operator.state_key,
        slots=operator.slots,
        whole_brokers=whole_brokers or max(of_broker) > 0 or bool(group_attachments(conf)),
        traffic=operator.traffic,
        max_debt_ms=-1 if broker.max_debt_ms is None else broker.max_debt_ms,
        release_quantum=broker.release_quantum_producers or 0,
        send_timeout_ms=operator.send_timeout_ms,
        hold_back_ms=conf.settings.input.hold_back_ms,
        classic=broker.dispatch_implementation == "classic",
        charges_entries=broker.dispatch_on_batch_message,
        throttles_caught_up=broker.dispatch_on_non_backlog_consumer,
        filtered_entries=broker.dispatch_for_filtered_entries,
        stats_interval_s=broker.stats_interval_s,
    )


def kept_layout(control: pa.Table) -> Layout | None:
    """The layout that the control table holds, None in a new one. Raises StateError for one of another version."""
    row = _newest_row(control)
    if row is None:
        return None
    kept = json.loads(row["name"])
    others = sorted(kept.keys() ^ {field.name for field in fields(Layout)})
    if others or kept["version"] != VERSION:
        differences = f", and they differ in {', '.join(others)}" if others else ""
        raise StateError(
            f"the output has a layout of version {kept.get('version')}, this headgate has version {VERSION}"
            f"{differences}: start with a new --output and --checkpoint, or go back to the headgate that wrote it"
        )
    return Layout(**kept)


def layout_row(layout: Layout, seq: int = 0, checkpoint: str | None = None) -> dict[str, Any]:
    """The layout as a control row, and whose it is; of several the one with the highest `seq` holds."""
    return control_row(FROM_THE_START, seq, LAYOUT, JOB) | {"name": json.dumps(asdict(layout)), "key": checkpoint}


def kept_checkpoint(control: pa.Table) -> str | None:
    """The checkpoint that the tables are written with; None in new ones."""
    row = _newest_row(control)
    return None if row is None else row["key"]


def without_layouts(control: pa.Table) -> pa.Table:
    """The rows of `control` but those of layouts: what the operator gets."""
    return control.filter(pc.invert(_is_layout(control)))


def _is_layout(control: pa.Table) -> pa.Array:
    """Which rows are layouts that a job wrote: what others append under that name is a dead letter."""
    return pc.fill_null(pc.and_(pc.equal(control["kind"], LAYOUT), pc.equal(control["source"], JOB)), fill_value=False)


def _newest_row(control: pa.Table) -> dict[str, Any] | None:
    rows = control.filter(_is_layout(control)).select(["seq", "name", "key"]).to_pylist()
    return max(rows, key=lambda row: row["seq"], default=None)


def check_layout(wanted: Layout, kept: Layout) -> None:
    """Raise StateError if the settings want another layout than the state has. Shared limiters may be gone, though."""
    differences = [
        f"{KEYS.get(name, name)}: the checkpoint has {was}, the conf files say {now}"
        for (name, now), was in zip(asdict(wanted).items(), asdict(kept).values(), strict=True)
        if now != was and not (name == "whole_brokers" and was)
    ]
    if differences:
        raise StateError(
            "the settings do not fit the state of this checkpoint: "
            + "; ".join(differences)
            + ". Restore them, or start with a new --output and --checkpoint"
        )


def routing_of(layout: Layout) -> Routing:
    return Routing(
        slots=layout.slots,
        by_topic=layout.state_key == "topic",
        whole_brokers=layout.whole_brokers,
    )


def rules_of(layout: Layout, meter: MeterParameters | None = None, *, connection_topics: bool = False) -> Rules:
    """meter: what the usage of groups is told for, None: it is not. connection_topics: see Rules."""
    return Rules(
        slot_ms=0 if meter is None else meter.slot_ms,
        epoch_ms=Rules.epoch_ms if meter is None else meter.epoch_ms,
        max_debt_ms=layout.max_debt_ms,
        release_quantum=layout.release_quantum,
        offered=layout.traffic == "offered",
        send_timeout_ms=layout.send_timeout_ms,
        hold_back_ms=layout.hold_back_ms,
        whole_brokers=layout.whole_brokers,
        connection_topics=connection_topics,
        slots=0 if layout.state_key == "topic" else layout.slots,
        classic=layout.classic,
        charges_entries=layout.charges_entries,
        throttles_caught_up=layout.throttles_caught_up,
        filtered_entries=layout.filtered_entries,
        stats_interval_s=layout.stats_interval_s,
    )
