"""resource-groups.json while a job runs: what it says after an edit."""

import logging

from headgate.conf import ResourceGroups, load_resource_groups
from headgate.errors import AwayError, ConfError
from headgate.folders import folder_of
from headgate.store_errors import unreached
from headgate.stores import BRIEF

LOG = logging.getLogger(__name__)


class GroupsFile:
    """An edit is handed out once. A file with mistakes, or that is gone, changes nothing, and the log says so once. One
    on a store that is away is looked at again, and the log says so once until it is there.

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
            stamp = stamp_of(self._path)
            groups = None if stamp == self._stamp else load_resource_groups(self._path)
        except ConfError as error:
            LOG.warning("%s was edited and is not taken in: %s", self._path, error)
            groups = None
        except (OSError, AwayError) as error:
            if not self._is_told_away:
                away = error if isinstance(error, AwayError) else unreached(self._path, error)
                LOG.warning("groups stay as they are: %s", away)
            self._is_told_away = True
            return None
        self._stamp, self._is_told_away = stamp, False
        if groups is None or groups == self._known:
            return None
        self._known = groups
        return groups

    def forget(self) -> None:
        """Hand out again what was handed out last: it could not be taken in."""
        self._stamp = self._known = None


def stamp_of(path: str) -> tuple[int, ...] | None:
    """What changes with every edit; None if there is no file. Raises OSError where a store does not say."""
    folder, name = folder_of(path, BRIEF)
    return folder.stamp(name)
