"""resource-groups.json while a job runs: what it says after an edit."""

import logging

from headgate.conf import ResourceGroups, load_resource_groups
from headgate.errors import AwayError, ConfError
from headgate.store_errors import said
from headgate.stores import BRIEF, folder_of

LOG = logging.getLogger(__name__)


class GroupsFile:
    """An edit is handed out once. A file with mistakes, or that is gone, changes nothing, and the log says so once; nor
    does one on a store that is away, which is looked at again.

    known: what the job has of it.
    """

    def __init__(self, path: str | None, known: ResourceGroups) -> None:
        self._path = path
        self._known: ResourceGroups | None = known
        self._stamp: tuple[int, ...] | None = None
        self._is_told_away = False

    def edited(self) -> ResourceGroups | None:
        """What it says now, None where that is what it said before. Cheap where nobody wrote to it."""
        if self._path is None:
            return None
        try:
            stamp = _stamp_of(self._path)
            if stamp == self._stamp:
                return None
            groups = load_resource_groups(self._path)
        except ConfError as error:
            self._stamp = stamp
            LOG.warning("%s was edited and is not taken in: %s", self._path, error)
            return None
        except (OSError, AwayError) as error:
            if not self._is_told_away:
                LOG.warning("%s cannot be looked at, and groups stay as they are: %s", self._path, said(error))
            self._is_told_away = True
            return None
        self._stamp, self._is_told_away = stamp, False
        if groups == self._known:
            return None
        self._known = groups
        return groups

    def forget(self) -> None:
        """Hand out again what was handed out last: it could not be taken in."""
        self._stamp = self._known = None


def stamp_of(path: str) -> tuple[int, ...] | None:
    """What changes with every edit; None if there is no file, or nobody can tell."""
    try:
        return _stamp_of(path)
    except OSError:
        return None


def _stamp_of(path: str) -> tuple[int, ...] | None:
    folder, name = folder_of(path, BRIEF)
    return folder.stamp(name)
