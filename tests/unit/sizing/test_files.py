"""The files that a sweep is told by: the grid, closed and all mistakes at once, and the operator's broker.conf."""

from pathlib import Path

import pytest

from headgate.core.cache.settings import CacheSettings, PolicyName, Profile
from headgate.errors import ConfError
from headgate.sizing.combinations import combinations
from headgate.sizing.grid_file import read_grid
from headgate.sizing.present import present_values

CONF = Path(__file__).parents[3] / "conf"
MIB_BYTES = 1 << 20


def grid_in(folder: Path, text: str) -> Path:
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


def conf_in(folder: Path, text: str) -> Path:
    (folder / "broker.conf").write_text(text)
    return folder


def test_a_grid_is_read(tmp_path: Path) -> None:
    grid = read_grid(
        grid_in(tmp_path, 'sizes_mib = [0.5, 2]\npolicies = ["lru"]\n[vary]\n"headgate.cache.rangeHits" = ["entry"]\n')
    )
    assert (grid.sizes_bytes, grid.policies) == ([MIB_BYTES // 2, 2 * MIB_BYTES], [PolicyName.LRU])
    assert grid.vary == {"headgate.cache.rangeHits": ["entry"]}


def test_the_shipped_grid_can_be_tried_on_the_shipped_conf() -> None:
    assert len(combinations(read_grid(CONF / "cache-sweep.toml"), present_values(CONF))) > 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["sizes_mib: got nothing", "policies: got nothing"]),
        (
            'sizes_mib = [0]\npolicies = ["mru"]\nsize = 1\n[vary]\nx = 3\n',
            ["size: got an unknown key", "sizes_mib: got [0]", "policies: got ['mru']", "vary.x: got 3"],
        ),
        ('sizes_mib = [1, true]\npolicies = ["lru"]', ["sizes_mib: got [1, True]"]),
        ('sizes_mib = [inf]\npolicies = ["lru"]\nvary = 1', ["sizes_mib: got [inf]", "vary: got 1"]),
        ("sizes_mib = [", ["TOML"]),
    ],
)
def test_every_mistake_of_a_grid_is_told(tmp_path: Path, text: str, told: list[str]) -> None:
    with pytest.raises(ConfError) as error:
        read_grid(grid_in(tmp_path, text))
    assert len(error.value.mistakes) == len(told)
    assert all(part in mistake for part, mistake in zip(told, error.value.mistakes, strict=True))


def test_a_grid_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfError, match="No such file"):
        read_grid(tmp_path / "none.toml")


def test_the_conf_of_now_is_what_broker_conf_says_of_caches(tmp_path: Path) -> None:
    conf = conf_in(
        tmp_path,
        "managedLedgerCacheSizeMB=2048\nheadgate.cache.profile = 4.2\nmanagedLedgerCacheEvictionWatermark=0.8\n"
        "managedLedgerCacheCopyEntries=TRUE\nbrokerPublisherThrottlingMaxMessageRate=10\nheadgate.cache.maxBytes=\n",
    )
    now = CacheSettings.of(present_values(conf))
    assert (now.max_bytes, now.profile, now.watermark) == (2048 * MIB_BYTES, Profile.V4_2, 0.8)
    assert now.copy_entries
    assert now.extend_accessed


def test_a_broker_conf_without_caches_has_the_defaults(tmp_path: Path) -> None:
    assert present_values(conf_in(tmp_path, "clusterName=c\n")) == {}


def test_every_value_of_broker_conf_that_is_not_allowed_is_told(tmp_path: Path) -> None:
    conf = conf_in(tmp_path, "managedLedgerCacheSizeMB=much\nmanagedLedgerCacheCopyEntries=1\n")
    with pytest.raises(ConfError) as error:
        present_values(conf)
    size, copies = error.value.mistakes
    assert "managedLedgerCacheSizeMB: got 'much'; allowed: an integer" in size
    assert "managedLedgerCacheCopyEntries: got '1'; allowed: true or false" in copies


def test_a_folder_without_broker_conf_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfError, match="correct --conf-dir"):
        present_values(tmp_path)
