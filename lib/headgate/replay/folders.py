"""The conf folders of a replay: read together, all that is wrong told at once, each with a name."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from headgate.conf import Conf, check_streaming, load_conf
from headgate.errors import ConfError
from headgate.stores import local_path


def load_folders(folders: Sequence[str], *, strict: bool = False) -> dict[str, Conf]:
    """The confs by the names of their folders, in the order given. strict: warnings about their files are mistakes.

    Raises ConfError with every mistake of every folder, and for two folders of one name: tables and pictures tell them
    apart by it.
    """
    confs: dict[str, Conf] = {}
    mistakes: list[str] = []
    warnings: list[str] = []
    places: dict[str, str] = {}
    for folder in folders:
        name = (local_path(folder) or PurePath(folder)).name
        if name in places:
            mistakes.append(
                f"--conf-dir {folder}: got the name {name} a second time ({places[name]} has it); allowed: folders of "
                "different names; copy or rename one"
            )
            continue
        places[name] = folder
        try:
            confs[name] = load_conf(folder, strict=strict)
        except ConfError as error:
            mistakes += error.mistakes
            warnings += error.warnings
            continue
        try:
            check_streaming(confs[name])
        except ConfError as error:
            mistakes += [f"{folder}: {mistake}" for mistake in error.mistakes]
    if mistakes:
        of_right = [warning for conf in confs.values() for warning in conf.warnings]
        raise ConfError(mistakes, [*warnings, *of_right])
    return confs


def folder_warnings(confs: Mapping[str, Conf]) -> list[str]:
    """What the folders say that a replay does not follow."""
    (first, leading), *others = confs.items()
    warnings = [f"{name}: {warning}" for name, conf in confs.items() for warning in conf.warnings]
    for name, conf in others:
        span, wanted = (
            (one.settings.input.event_time_from, one.settings.input.event_time_until) for one in (conf, leading)
        )
        if span != wanted:
            warnings.append(f"{name}: [input] event_time_from and event_time_until of {first} hold for all folders")
    return warnings
