"""The tables of a throttle job without rows, copied: to create eight Delta tables takes ten times as long."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from headgate.throttle.tables import throttle_tables


@cache
def _made() -> TemporaryDirectory[str]:
    """Created by the first who asks; it goes with this process."""
    folder = TemporaryDirectory(prefix="headgate-empty-tables-")
    throttle_tables(folder.name)
    return folder


def empty_tables(folder: Path | str):
    """As throttle_tables of a folder in which there are none."""
    shutil.copytree(_made().name, folder, dirs_exist_ok=True)
    return throttle_tables(folder)
