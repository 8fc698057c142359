"""The files that a sweep is told by: the grid, closed and all mistakes at once, and the operator's broker.conf."""

from pathlib import Path

import pytest

from headgate.conf import load_conf
from headgate.core.cache.settings import PolicyName
from headgate.errors import ConfError
from headgate.sizing.combinations import combinations
from headgate.sizing.grid_file import read_grid

CONF = Path(__file__).parents[3] / "conf"
MIB_BYTES = 1 << 20
GRID = 'sizes_mib = [1]\npolicies = ["lru"]\n'


def grid_in(folder: Path, text: str) -> Path:
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


@pytest.mark.parametrize("vary", ['[vary]\n"headgate.cache.rangeHits"', "[vary]\nheadgate.cache.rangeHits"])
def test_a_grid_is_read(tmp_path: Path, vary: str) -> None:
    grid = read_grid(grid_in(tmp_path, f'sizes_mib = [0.5, 2]\npolicies = ["lru"]\n{vary} = ["entry"]\n'), {})
    assert (grid.sizes_bytes, grid.policies) == ([MIB_BYTES // 2, 2 * MIB_BYTES], [PolicyName.LRU])
    assert grid.vary == {"headgate.cache.rangeHits": ["entry"]}


@pytest.mark.parametrize("mode", ["exact", "horizon"])
def test_the_shipped_grid_can_be_tried_on_the_shipped_conf(mode: str) -> None:
    present = load_conf(CONF).cache | {"headgate.cache.mode": mode}
    assert len(combinations(read_grid(CONF / "cache-sweep.toml", present), present)) > 1


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
        ('sizes_mib = [1e305]\npolicies = ["lru"]', ["sizes_mib: got [1e+305]"]),
        (
            GRID + '[vary]\n"headgate.cache.rangeHits" = ["entry"]\nheadgate.cache.rangeHits = ["whole"]\n',
            ["vary.headgate.cache.rangeHits: got two lists; allowed: one"],
        ),
        (
            'sizes_mib = [1e-9]\npolicies = ["lru"]',
            ["sizes_mib: got [1e-09]; allowed: a list of numbers in MiB, of a byte"],
        ),
        ('sizes_mib = [1]\npolicies = ["lru"]\n[vary]\nheadgate.cache.look = 3\n', ["vary.headgate.cache.look: got 3"]),
        (
            'sizes_mib = [0]\npolicies = ["lru"]\n[vary]\nx = [1]\n"headgate.cache.mode" = ["exact"]\n',
            [
                "sizes_mib: got [0]",
                "grid.toml: vary.x: got an unknown key",
                "grid.toml: vary.headgate.cache.mode: got a",
            ],
        ),
    ],
)
def test_every_mistake_of_a_grid_is_told(tmp_path: Path, text: str, told: list[str]) -> None:
    with pytest.raises(ConfError) as error:
        read_grid(grid_in(tmp_path, text), {})
    assert len(error.value.mistakes) == len(told)
    assert all(part in mistake for part, mistake in zip(told, error.value.mistakes, strict=True))


def test_what_mode_horizon_cannot_have_can_be_tried(tmp_path: Path) -> None:
    vary = "[vary]\ncacheEvictionByExpectedReadCount = [false]\n"
    assert read_grid(grid_in(tmp_path, GRID + vary), {"headgate.cache.mode": "horizon"}).vary


def test_a_grid_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfError, match="No such file"):
        read_grid(tmp_path / "none.toml", {})
