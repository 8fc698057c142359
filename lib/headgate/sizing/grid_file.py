"""The file that says what a sweep tries: TOML, closed, all mistakes at once."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headgate.conf.findings import Findings, Place, shown
from headgate.core.cache.settings import MIB_BYTES, PolicyName
from headgate.errors import ConfError
from headgate.sizing.combinations import Grid, key_mistakes

_KEYS = ("sizes_mib", "policies", "vary")
_LARGEST_MIB = 1 << 40


def read_grid(path: str | Path, present: Mapping[str, object]) -> Grid:
    """The grid of a file. Raises ConfError with every mistake in it, and if it cannot be read.

    present: the conf that values of `vary` are tried on, as `combinations.combinations` takes it.
    """
    file, findings = str(path), Findings()
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfError([f"{file}: got {error.strerror}; allowed: a readable file; correct --grid"]) from error
    except (ValueError, RecursionError) as error:  # of TOML, and of UTF-8; brackets thousands deep
        raise ConfError([f"{file}: got {error}; allowed: TOML in UTF-8; correct the syntax"]) from error
    for key in table.keys() - set(_KEYS):
        findings.unknown_key(Place(file, key), key, _KEYS)
    listed = partial(_listed, table, findings, file)
    sizes = listed(key="sizes_mib", allowed="numbers in MiB, of a byte or more", is_right=_is_size)
    policies = listed(key="policies", allowed=f"names out of {', '.join(PolicyName)}", is_right=_is_policy)
    vary = table.get("vary", {})
    if not isinstance(vary, dict):
        findings.mistake(Place(file, "vary"), shown(vary), "a table of lists", 'write [vary] and "KEY" = [VALUE, ..]')
        vary = {}
    keys = [key for key, _ in _dotted(vary)]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        findings.mistake(Place(file, f"vary.{key}"), "two lists", "one", "write the key once, in quotes or without")
    vary = dict(_dotted(vary))
    are_lists = {key: values for key, values in vary.items() if isinstance(values, list) and values}
    for key in (key for key in vary if key not in are_lists):
        place = Place(file, f"vary.{key}")
        findings.mistake(place, shown(vary[key]), "a list of values", f'write "{key}" = [VALUE, ..]')
    findings.mistakes += (f"{file}: {mistake}" for mistake in key_mistakes(are_lists, present))
    if findings.mistakes:
        raise ConfError(findings.mistakes)
    return Grid([round(size * MIB_BYTES) for size in sizes], [PolicyName(name) for name in policies], vary)


def _dotted(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Keys with dots, which TOML takes apart where they are not in quotes."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{before}{key}.")
        else:
            yield before + key, value


def _listed(
    table: dict[str, Any], findings: Findings, file: str, *, key: str, allowed: str, is_right: Callable[[object], bool]
) -> list[Any]:
    values = table.get(key)
    if isinstance(values, list) and values and all(map(is_right, values)):
        return values
    got = "nothing" if values is None else shown(values)
    findings.mistake(Place(file, key), got, f"a list of {allowed}", f"write {key} = [..]")
    return []


def _is_size(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 < value <= _LARGEST_MIB and round(value * MIB_BYTES) >= 1


def _is_policy(value: object) -> bool:
    return isinstance(value, str) and value in set(PolicyName)
