"""Loads a conf directory as a whole: every file is read, and all that is wrong is reported at once."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from headgate.conf.broker import BrokerConf
from headgate.conf.broker_file import read_broker_conf
from headgate.conf.cache_keys import read_cache_values
from headgate.conf.checks import check_classic_periods, check_state_key, warn_of_limits_that_only_load
from headgate.conf.conf import Conf
from headgate.conf.findings import Findings, Place
from headgate.conf.policies import Policies, read_policies
from headgate.conf.properties import read_properties
from headgate.conf.quota_keys import read_quota_settings
from headgate.conf.resource_groups import ResourceGroups, read_resource_groups
from headgate.conf.settings import Settings
from headgate.conf.settings_file import read_settings
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import AwayError, ConfError, InputError
from headgate.folders import Folder, folder_at, folder_of
from headgate.store_errors import is_away, said, unreached
from headgate.stores import BRIEF, check_reachable, joined, local_path

FILES: Final = ("headgate.toml", "broker.conf", "policies.json", "resource-groups.json")

_OF_OTHERS = ("cache-sweep.toml", "cluster.toml", "log4j2.properties", "spark-defaults.conf", "grafana-dashboard.json")
_ENDINGS = (".json", ".toml", ".conf", ".properties")
_ALIKE = 0.8
"""From 0 to 1: a file name that is so much like one of FILES is meant to be it."""

T = TypeVar("T")
BrokerFile = tuple[BrokerConf, QuotaSettings, dict[str, Any]]
"""What the parts of headgate take from a broker.conf."""


def load_conf(conf_dir: str | Path, *, strict: bool = False) -> Conf:
    """Return the conf in a directory; a file that is missing there stands for its defaults. strict: warnings are
    mistakes.

    Raises ConfError with every mistake of every file, or if the directory is missing, and AwayError where it is on a
    store that does not answer.
    """
    place, folder = str(conf_dir), folder_at(conf_dir)
    _check_folder(place, folder)
    files = {name: joined(place, name) for name in FILES}
    findings = Findings()
    _warn_of_names(place, folder, findings)

    def read(name: str, parse: Callable[[bytes, str, Findings], T], default: T) -> T:
        content = _content(folder, files[name], findings)
        return default if content is None else parse(content, files[name], findings)

    settings = read("headgate.toml", _decoded(read_settings, Settings()), Settings())
    nothing: BrokerFile = (BrokerConf(), QuotaSettings(), {})
    broker, quota, cache = read("broker.conf", _broker_conf, nothing)
    policies = read("policies.json", _decoded(read_policies, Policies()), Policies())
    groups = read("resource-groups.json", _decoded(read_resource_groups, ResourceGroups()), ResourceGroups())
    conf = Conf(settings, broker, policies, groups, quota, cache)
    check_state_key(conf, files, findings)
    check_classic_periods(conf, files, findings)
    warn_of_limits_that_only_load(conf, files, findings)
    if strict:
        findings.mistakes += findings.warnings
        findings.warnings.clear()
    if findings.mistakes:
        raise ConfError(findings.mistakes, findings.warnings)
    return replace(conf, warnings=tuple(findings.warnings), groups_file=files["resource-groups.json"])


def _check_folder(place: str, folder: Folder) -> None:
    path = local_path(place)
    try:
        check_reachable(place, "--conf-dir")
        is_folder = bool(folder.names()) if path is None else path.is_dir()
    except AwayError:
        raise
    except InputError as error:
        raise ConfError([str(error)]) from error
    except OSError as error:
        _raise_if_away(f"--conf-dir: {place}", error)
        raise ConfError(
            [f"{place}: cannot be listed: {said(error)}; correct --conf-dir, or see to it that it can"]
        ) from error
    if not is_folder:
        where = place if path is None else Path(place)
        raise ConfError(
            [f"{where}: got no directory; allowed: one with {', '.join(FILES)}, each optional; correct --conf-dir"]
        )


def _warn_of_names(place: str, folder: Folder, findings: Findings) -> None:
    """Say which files are not read although their names are nearly those of FILES, or end as they do."""
    with suppress(OSError):  # the files that matter say so themselves
        there = folder.names()
        for name in there:
            meant = get_close_matches(name.casefold(), FILES, 1, _ALIKE)
            allowed = f"allowed: {', '.join(FILES)}"
            if name in {*FILES, *_OF_OTHERS}:
                continue
            if meant and meant[0] not in there:
                findings.warnings.append(f"{joined(place, name)} is not read; {allowed}; rename it to {meant[0]}")
            elif not meant and name.endswith(_ENDINGS):
                findings.warnings.append(
                    f"{joined(place, name)} is not read; {allowed}; rename it, or move it elsewhere"
                )


def load_resource_groups(path: str) -> ResourceGroups:
    """Return what a resource-groups.json says, for a job that runs and looks again soon.

    Raises ConfError with every mistake in it, and if it is not there, AwayError where a store does not answer.
    """
    findings = Findings()
    content = _content(folder_of(path, BRIEF)[0], path, findings)
    groups = ResourceGroups()
    if content is not None:
        groups = _decoded(read_resource_groups, groups)(content, path, findings)
    elif not findings.mistakes:
        remedy = "put it back: until then groups stay as they are"
        findings.mistake(Place(path), "no file", "a readable file", remedy)
    if findings.mistakes:
        raise ConfError(findings.mistakes)
    return groups


def _broker_conf(content: bytes, file: str, findings: Findings) -> BrokerFile:
    entries = read_properties(content, file, findings)
    return (
        read_broker_conf(entries, file, findings),
        read_quota_settings(entries, file, findings),
        read_cache_values(entries, file, findings),
    )


def _content(folder: Folder, path: str, findings: Findings) -> bytes | None:
    try:
        return folder.read(path.rpartition("/")[2])
    except OSError as error:
        _raise_if_away(path, error)
        findings.mistake(Place(path), error.strerror or said(error), "a readable file", "correct it, or remove it")
        return None


def _raise_if_away(what: str, error: Exception) -> None:
    """A store that does not answer is no mistake in the conf."""
    if is_away(error):
        raise unreached(what, error) from error


def _decoded(parse: Callable[[str, str, Findings], T], default: T) -> Callable[[bytes, str, Findings], T]:
    """Return `parse` for bytes, which are UTF-8 with or without a byte order mark."""

    def parse_bytes(content: bytes, file: str, findings: Findings) -> T:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = 1 + content.count(b"\n", 0, error.start)
            findings.mistake(Place(file, line=line), "bytes that are not UTF-8", "UTF-8", "save the file as UTF-8")
            return default
        return parse(text, file, findings)

    return parse_bytes
