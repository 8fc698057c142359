"""resource-groups.json while a job runs: what it says after an edit."""

import logging

from headgate.conf import ResourceGroups, load_resource_groups
from headgate.errors import ConfError
from headgate.stores import folder_of

LOG = logging.getLogger(__name__)


class GroupsFile:
    """An edit is handed out once. A file with mistakes, or that is gone, changes nothing, and the log says so once.

    known: what the job has of it.
    """

    def __init__(self, path: str | None, known: ResourceGroups) -> None:
        self._path = path
        self._known: ResourceGroups | None = known
        self._stamp: tuple[int, ...] | None = None

    def edited(self) -> ResourceGroups | None:
        """What it says now, None where that is what it said before. Cheap where nobody wrote to it."""
        if self._path is None or (stamp := stamp_of(self._path)) == self._stamp:
            return None
        self._stamp = stamp
        try:
            groups = load_resource_groups(self._path)
        except ConfError as error:
            LOG.warning("%s was edited and is not taken in: %s", self._path, error)
            return None
        if groups == self._known:
            return None
        self._known = groups
        return groups

    def forget(self) -> None:
        """Hand out again what was handed out last: it could not be taken in."""
        self._stamp = self._known = None


def stamp_of(path: str) -> tuple[int, ...] | None:
    """What changes with every edit; None if there is no file, or nobody can tell."""
    folder, name = folder_of(path)
    try:
        return folder.stamp(name)
    except OSError:
        return None
