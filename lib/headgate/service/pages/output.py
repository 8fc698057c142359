"""The tables of an output as they grow, looked at cheaply: what a page reads, and the versions it was made from."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.tables.opened import Locations
from headgate.quota.tables.schemas import SPECS
from headgate.quota.tables.topic_tables import BROKERS, folders_of
from headgate.store_errors import said
from headgate.stores import BRIEF, file_system
from headgate.tables.query import Followed
from headgate.why.tables import Part

LOOK_S = 0.5
"""How long a look holds: however many ask, the logs are looked at no more often."""
_LOG = "_delta_log"


@dataclass(frozen=True)
class Look:
    """An output at one moment.

    parts: by table, one part per job. broken: why a table that is there cannot be read. versions: by table, what it
    was at that moment, equal as long as nothing is written.
    """

    output: str
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    def key(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """Equal as long as nothing changes in these tables, and none comes or goes."""
        return tuple(sorted(self.versions)), tuple(self.versions.get(name, ()) for name in names)


class Output:
    """Follows every table of an output. A look reads the logs' ends alone, at most every LOOK_S, and waits for a store
    as BRIEF has it. For any thread.
    """

    def __init__(
        self, output: str, settings: QuotaSettings, clock: Callable[[], float] = time.monotonic, look_s: float = LOOK_S
    ) -> None:
        self._output, self._settings, self._clock, self._look_s = output, settings, clock, look_s
        self._followed: dict[str, Followed] = {}
        self._lock = Lock()
        self._last: tuple[float, Look | TableError | OSError] | None = None

    def look(self) -> Look:
        """The tables as they are now, or were up to LOOK_S ago. Never raises for a table; `Look.broken` has it.

        Raises TableError and OSError where the output's folder cannot be listed; who waited for that does not try
        again.
        """
        with self._lock:
            if self._last is None or self._clock() - self._last[0] >= self._look_s:
                began_s = self._clock()
                try:
                    self._last = (began_s, self._looked())
                except (TableError, OSError) as error:
                    self._last = (self._clock(), error)
            found = self._last[1]
        if isinstance(found, Look):
            return found
        raise found

    def _looked(self) -> Look:
        places = self._places()
        for gone in self._followed.keys() - {location for found in places.values() for _, location in found}:
            del self._followed[gone]
        parts: dict[str, tuple[Part, ...]] = {}
        broken: dict[str, str] = {}
        versions: dict[str, tuple[object, ...]] = {}
        for name, found in sorted(places.items()):
            opened = []
            for output, location in found:
                try:
                    opened.append(Part(output, location, self._refreshed(location)))
                except TableNotFoundError:  # a folder without a table yet
                    continue
                except (DeltaError, OSError) as error:
                    broken[name] = f"the table {location} cannot be read: {said(error)}"
            if name in broken:
                versions[name] = ("broken", broken[name])
            elif opened:
                parts[name] = tuple(opened)
                versions[name] = tuple((one.location, one.table.version(), one.table.metadata().id) for one in opened)
        return Look(self._output, parts, broken, versions)

    def _refreshed(self, location: str) -> DeltaTable:
        """What cannot be followed is opened anew: it may be another table by now."""
        followed = self._followed.get(location)
        if followed is not None:
            try:
                return followed.refresh()
            except (DeltaError, OSError):
                del self._followed[location]
        followed = self._followed[location] = Followed(DeltaTable(location, storage_options=BRIEF.of_delta), BRIEF)
        return followed.table

    def _places(self) -> dict[str, list[tuple[str, str]]]:
        """By table, the outputs and locations of its parts."""
        places: dict[str, list[tuple[str, str]]] = {}
        for output in (self._output, *folders_of(f"{self._output}/{BROKERS}", BRIEF)):
            for location in folders_of(output, BRIEF):
                if location in self._followed or _has_log(location):
                    places.setdefault(location.rpartition("/")[2], []).append((output, location))
        locations = Locations.of(self._output, self._settings)
        for spec in SPECS:
            place = getattr(locations, spec.name.removeprefix("rg_"))
            if place != f"{self._output}/{spec.name}":
                places[spec.name] = [(place.rpartition("/")[0], place)]
        return places


def _has_log(location: str) -> bool:
    files, root = file_system(location, BRIEF)
    found: pafs.FileInfo = files.get_file_info(f"{root}/{_LOG}")
    return bool(found.type is pafs.FileType.Directory)
