"""Machines between the columns of a state and plain data, as readable machines take and give it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.core.kernels.columns import Ints
from headgate.core.kernels.protocol.types import NONE, READS_ON
from headgate.core.protocol.broker.gate import condition_hold, producer_hold
from headgate.core.protocol.broker.producer import Phase
from headgate.core.protocol.reasons import Reason
from headgate.protocol.state import SlotState
from headgate.protocol.stored import no_machines, type_of

PHASES = "".join(Phase)
Plain = Mapping[str, Any]


def read(state: SlotState, place: int) -> tuple[tuple[int, int, int], dict[str, Any], dict[str, Any] | None]:
    """The number of a connection's last decision, the times of its last close and row (NONE: none that is known), its
    Numbering.state() and Connection.state(), None: closed.
    """
    own = {name: column[place].item() for name, column in state.machines["connections"].items()}
    if not own["is_open"]:
        return (own["seq"], own["closed_ms"], own["heard_ms"]), {}, None
    rows = {table: _rows(state, table, "connection", place) for table in ("queued", "conditions", "named")}
    producers = [_producer(state, row) for row in _places(state, "producers", "connection", place)]
    settings = json.loads(state.settings[own["settings"]].as_py())
    holds = [producer_hold(one["id"]) for one in producers if one["phase"] == Phase.HOLDING]
    holds += [condition_hold(Reason(one["reason"])) for one in rows["conditions"] if one["marked"] > one["released"]]
    id_of, names = state.machines["producers"]["id"], state.names
    numbering = {
        "ids": [
            [_text(names, one["topic"]), names[one["name"]].as_py(), int(id_of[one["producer"]])]
            for one in rows["named"]
        ],
        "counts": [[one["id"], *counts] for one in producers for counts in one["counts"]],
        "conditions": [[one["reason"], one["begun"], one["is_set"]] for one in rows["conditions"]],
    }
    connection = {
        "now_ms": own["now_ms"],
        "supports": bool(own["supports"]),
        "settings": settings,
        "issued": own["issued"],
        "gate": {
            "freezes": settings["freeze_deadlines"],
            "stood_ms": own["stood_ms"],
            "holds": sorted(holds),
            "off_at_ms": None if own["off_at_ms"] == READS_ON else own["off_at_ms"],
            "queued": [one["request_id"] for one in rows["queued"]],
        },
        "conditions": [[one["reason"], one["marked"], one["released"]] for one in rows["conditions"]],
        "producers": [
            {name: value for name, value in one.items() if name not in {"is_open", "counts"}}
            for one in producers
            if one["is_open"]
        ],
    }
    return (own["seq"], own["closed_ms"], own["heard_ms"]), numbering, connection


def _producer(state: SlotState, place: int) -> dict[str, Any]:
    own = {name: column[place].item() for name, column in state.machines["producers"].items()}
    limiters = _rows(state, "limiters", "producer", place)
    is_told = own["is_open"] and PHASES[own["phase"]] in (Phase.TOLD, Phase.TRUSTED)
    ids = sorted((one["request_id"], one["due_ms"]) for one in _rows(state, "ids", "producer", place, is_ordered=False))
    return {
        "id": own["id"],
        "topic": _text(state.names, own["topic"]),
        "phase": PHASES[own["phase"]],
        "ordinals": [[one["code"], one["marked"], one["released"]] for one in limiters],
        "quotes": [[one["code"], one["quoted_ms"], _buckets(one)] for one in limiters if one["buckets"]],
        "open_ids": [list(entry) for entry in ids],
        "window": [own["end_ms"], own["reason"]] if is_told else None,
        "is_open": own["is_open"],
        "counts": [[one["code"], one["marks"], one["unmarks"]] for one in limiters],
    }


def _buckets(limiter: Plain) -> list[list[int]]:
    return [[limiter[f"balance_{which}"], limiter[f"rate_{which}"]] for which in range(limiter["buckets"])]


def _text(names: pa.StringArray, place: int) -> str | None:
    text: str | None = None if place == NONE else names[place].as_py()
    return text


def _places(state: SlotState, table: str, by: str, owner: int, *, is_ordered: bool = True) -> list[int]:
    column = state.machines[table][by]
    if not is_ordered:
        return np.flatnonzero(column == owner).tolist()
    return list(range(*np.searchsorted(column, [owner, owner + 1]).tolist()))


def _rows(state: SlotState, table: str, by: str, owner: int, *, is_ordered: bool = True) -> list[dict[str, int]]:
    rows = _places(state, table, by, owner, is_ordered=is_ordered)
    return [{name: column[row].item() for name, column in state.machines[table].items()} for row in rows]


class Writing:
    """Puts connections into a state in place of those at `gone`: behind those that stay, in the order of `add`."""

    def __init__(self, state: SlotState, gone: Ints) -> None:
        self._state = state
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in state.machines}
        self._connection: list[str] = []
        self._texts = {text: place for place, text in enumerate(state.names.to_pylist())}
        self._settings = {text: place for place, text in enumerate(state.settings.to_pylist())}
        stay = np.ones(len(state.connection), np.bool_)
        stay[gone] = False
        self._kept = int(stay.sum())
        state.keep(stay)
        self._producers = len(state.machines["producers"]["id"])

    def add(
        self,
        name: str,
        numbering: Plain,
        connection: Plain | None,
        *,
        seq: int,
        closed_ms: int,
        heard_ms: int,
        due_ms: int,
    ) -> None:
        """One connection as `read` gives it, and when it acts next."""
        own = self._kept + len(self._connection)
        self._connection.append(name)
        if connection is None:
            self._rows["connections"].append((0, READS_ON, 0, 0, seq, due_ms, closed_ms, heard_ms, NONE, 0, 0))
            return
        gate = connection["gate"]
        off_at_ms = READS_ON if gate["off_at_ms"] is None else gate["off_at_ms"]
        settings = _place(self._settings, json.dumps(connection["settings"]))
        numbers = (connection["now_ms"], off_at_ms, gate["stood_ms"], connection["issued"])
        times = (seq, due_ms, closed_ms, heard_ms)
        self._rows["connections"].append((*numbers, *times, settings, 1, int(connection["supports"])))
        self._rows["queued"] += [(own, request_id) for request_id in gate["queued"]]
        marked = {reason: pair for reason, *pair in connection["conditions"]}
        begun = {reason: pair for reason, *pair in numbering.get("conditions", ())}
        for reason in sorted({*marked, *begun}):
            self._rows["conditions"].append((own, reason, *marked.get(reason, (0, 0)), *begun.get(reason, (0, 0))))
        self._add_producers(own, numbering, connection["producers"])

    def _add_producers(self, own: int, numbering: Plain, producers: Sequence[Plain]) -> None:
        counts = {(id_, code): pair for id_, code, *pair in numbering.get("counts", ()) if id_ is not None}
        opened = {producer["id"]: producer for producer in producers}
        places = {}
        named = [id_ for *_, id_ in numbering.get("ids", ())]
        due = []
        for id_ in sorted({*opened, *named, *(id_ for id_, _ in counts)}):
            place = places[id_] = self._producers + len(self._rows["producers"])
            producer = opened.get(id_, {})
            end_ms, reason = producer.get("window") or (0, 0)
            topic = _place(self._texts, producer["topic"]) if producer else NONE
            phase = PHASES.index(producer.get("phase", Phase.FREE))
            self._rows["producers"].append((own, id_, topic, int(bool(producer)), phase, reason, end_ms))
            due += [(due_ms, id_, request_id, place) for request_id, due_ms in producer.get("open_ids", ())]
            self._add_limiters(place, producer, {code: pair for (of, code), pair in counts.items() if of == id_})
        self._rows["ids"] += [(place, request_id, due_ms) for due_ms, _, request_id, place in sorted(due)]
        for topic, name, id_ in numbering.get("ids", ()):
            code = NONE if topic is None else _place(self._texts, topic)
            self._rows["named"].append((own, code, _place(self._texts, name), places[id_]))

    def _add_limiters(self, place: int, producer: Plain, counts: Mapping[int, Sequence[int]]) -> None:
        ordinals = {code: pair for code, *pair in producer.get("ordinals", ())}
        quotes = {code: (at_ms, buckets) for code, at_ms, buckets in producer.get("quotes", ())}
        for code in sorted({*ordinals, *counts}):
            at_ms, buckets = quotes.get(code, (0, []))
            pairs = [number for bucket in [*buckets, (0, 0), (0, 0)][:2] for number in bucket]
            row = (*ordinals.get(code, (0, 0)), at_ms, len(buckets), *pairs, *counts.get(code, (0, 0)))
            self._rows["limiters"].append((place, code, *row))

    def finish(self) -> None:
        """Join what was added to what stayed."""
        state = self._state
        state.connection = pa.concat_arrays([state.connection, pa.array(self._connection, pa.string())])
        state.names, state.settings = pa.array(self._texts, pa.string()), pa.array(self._settings, pa.string())
        for table, columns in no_machines().items():
            added = list(zip(*self._rows[table], strict=True)) or [()] * len(columns)
            state.machines[table] = {
                name: np.append(state.machines[table][name], np.array(values, type_of(table, name)))
                for name, values in zip(columns, added, strict=True)
            }
        state.drop_unused()


def _place(places: dict[str, int], text: str) -> int:
    return places.setdefault(text, len(places))
