"""Conf folders with what their files say, both from the same moment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headgate.conf import Conf
from headgate.errors import ConfError
from headgate.replay.folders import load_folders
from headgate.store_errors import unreached
from headgate.stores import check_reachable
from headgate.tryout.conf_changes import ConfKeys, conf_keys
from headgate.tryout.watch import stamps_of


class Loaded(NamedTuple):
    """confs: by the names of their folders, or all that is wrong with them. keys: of each conf, none of wrong ones."""

    confs: Mapping[str, Conf] | ConfError
    keys: Sequence[ConfKeys]


def loaded(folders: Sequence[str], *, strict: bool = False) -> Loaded:
    """The folders as they are; files that were saved while they were read are read again.

    strict: warnings about them are mistakes.
    """
    for folder in folders:  # a store that is away is asked once, not for each file
        check_reachable(folder, "--conf-dir")
    try:
        return _loaded(folders, strict=strict)
    except OSError as error:
        raise unreached(f"--conf-dir: {', '.join(folders)}", error) from error


def _loaded(folders: Sequence[str], *, strict: bool) -> Loaded:
    while True:
        before = stamps_of(folders)
        try:
            found = _read(folders, strict=strict)
        except (OSError, ValueError):
            if stamps_of(folders) == before:
                raise
            continue
        if stamps_of(folders) == before:
            return found


def _read(folders: Sequence[str], *, strict: bool) -> Loaded:
    try:
        return Loaded(load_folders(folders, strict=strict), [conf_keys(folder) for folder in folders])
    except ConfError as error:
        return Loaded(error, [])
