"""Keys of the entry cache in broker.conf: a closed set, defaults of a profile, all mistakes at once."""

import re
from pathlib import Path

import pytest

from headgate.conf import Conf, load_conf
from headgate.conf.load import FILES
from headgate.core.cache.settings import KEYS, CacheSettings, difference
from headgate.errors import ConfError
from unit.conf.page import documented_defaults

ROOT = Path(__file__).parents[3]
SIZE, TTL = "managedLedgerCacheSizeMB", "managedLedgerCacheEvictionTimeThresholdMillis"
MAX, POLICY, MODE = "headgate.cache.maxBytes", "headgate.cache.policy", "headgate.cache.mode"
GRACE = "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"


def conf_of(folder: Path, text: str) -> Conf:
    (folder / "broker.conf").write_text(text)
    return load_conf(folder)


def test_what_a_file_leaves_out_or_blank_is_the_default(tmp_path: Path) -> None:
    assert CacheSettings.of({}) == CacheSettings.of(conf_of(tmp_path, f"{SIZE}=\n").cache)
    assert CacheSettings.of({}) == CacheSettings.of(load_conf(ROOT / "conf").cache)


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        (f"{SIZE}=128", "size_mib", 128),
        (f"{MAX}=4096", "max_bytes", 4096),
        ("managedLedgerCacheEvictionWatermark=1", "watermark", 1.0),
        ("managedLedgerCacheEvictionWatermark=.5", "watermark", 0.5),
        ("cacheEvictionByExpectedReadCount=FALSE", "strategy", False),
        (f"{POLICY}=lru", "policy", "lru"),
        ("headgate.cache.profile=4.0", "policy", "size_proportional"),
        ("headgate.cache.profile=4.2", "extend_accessed", True),
        (f"{TTL}=300", "grace_ms", 600),
    ],
)
def test_values_are_read_in_pulsars_forms(line: str, field: str, expected: object, tmp_path: Path) -> None:
    assert expected == getattr(CacheSettings.of(conf_of(tmp_path, line).cache), field)


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = f"{SIZE}=many\nheadgate.cache.polcy=lru\n{MODE}=horizon\n{POLICY}=lru\nheadgateMaxDebt=1\n"
    with pytest.raises(ConfError) as error:
        conf_of(tmp_path, text)
    told = str(error.value)
    assert f"line 1: {SIZE}: got 'many'; allowed: an integer from 0 to" in told
    assert re.search(
        r"line 2: headgate\.cache\.polcy: got an unknown key; .*; did you mean headgate\.cache\.policy\?", told
    )
    assert f"line 3: {MODE}: got horizon with policy lru" in told
    assert "did you mean headgateMaxDebtMs?" in told


def test_a_misspelt_key_of_pulsars_is_a_warning(tmp_path: Path) -> None:
    (warning,) = conf_of(tmp_path, "managedLedgerCacheSizeMb=5").warnings
    assert f"headgate does not read this key; if {SIZE} is meant, correct it" in warning


def test_keys_that_do_nothing_take_any_value(tmp_path: Path) -> None:
    assert {} == conf_of(tmp_path, "managedLedgerCacheEvictionFrequency=often\n").cache
    assert "broker.conf" in FILES


@pytest.mark.parametrize(
    ("before", "after", "dynamic", "fixed"),
    [
        ({}, {}, {}, ()),
        ({}, {SIZE: 3}, {SIZE: 3}, ()),
        ({SIZE: 3}, {}, {SIZE: 64}, ()),
        ({}, {MAX: 5}, {SIZE: 64, MAX: 5}, ()),
        ({MAX: 5}, {SIZE: 64}, {SIZE: 64}, ()),
        ({}, {TTL: 7}, {TTL: 7}, ()),
        ({}, {TTL: 7, GRACE: 14}, {TTL: 7}, (GRACE,)),
        ({}, {POLICY: "lru", SIZE: 64}, {}, (POLICY,)),
    ],
)
def test_dynamic_keys_may_change_between_two_files_and_others_may_not(
    before: dict, after: dict, dynamic: dict, fixed: tuple
) -> None:
    """A size in MiB alone ends one in bytes; a grace that nobody set stays as it began."""
    assert (dynamic, fixed) == difference(before, after)
    if not fixed:
        assert CacheSettings.of(after).max_bytes == CacheSettings.of(before).changed(dynamic or {TTL: 1}).max_bytes


def test_the_documentation_has_every_key_with_its_default() -> None:
    documented = documented_defaults()
    assert set(KEYS) <= set(documented)
    settings = CacheSettings.of({}).values()
    written = {key: str(value).lower() for key, value in settings.items() if key != GRACE}
    assert written == {key: documented[key] for key in written}
