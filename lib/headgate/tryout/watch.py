"""Notices that conf files were saved: written in place, replaced by rename, removed or put back."""

from collections.abc import Sequence
from contextlib import suppress
from threading import Event

from headgate.conf.load import FILES
from headgate.quota.groups.file import stamp_of
from headgate.stores import is_stored, joined

LOOK_S, STORE_LOOK_S = 0.1, 1.0

Stamps = dict[str, tuple[int, ...] | None]


class Watched:
    """The conf files of folders, as they were when `saved` returned last, or at the start."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._look_s = STORE_LOOK_S if any(map(is_stored, folders)) else LOOK_S
        self._seen: Stamps = {}
        with suppress(OSError):  # who reads the files says so
            self._seen = stamps_of(folders)

    def saved(self, stop: Event) -> bool:
        """Wait until files have changed and are not being written any more; False if `stop` was set first.

        Files that are saved together count as one change, and one that an editor moves away for a moment as none. What
        was saved while a store is away is seen once it is back.
        """
        last = self._seen
        while not stop.wait(self._look_s):
            try:
                now = stamps_of(self._folders)
            except OSError:
                continue
            if now == last != self._seen:
                self._seen = now
                return True
            last = now
        return False

    def forget(self) -> None:
        """What was seen last could not be read: the next look that succeeds sees it again."""
        self._seen = {}


def stamps_of(folders: Sequence[str]) -> Stamps:
    """What tells, of every conf file of the folders, that it was saved. Raises OSError where a store does not say."""
    return {file: stamp_of(file) for file in (joined(folder, name) for folder in folders for name in FILES)}
