"""The headgate package as one zip for the workers of a cluster. Equal sources give the same file name and bytes."""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import hashlib
import os
import zipfile
from pathlib import Path

from steps import CACHE, ROOT

KEPT = 5
EPOCH = (1980, 1, 1, 0, 0, 0)  # zip's own zero: a time of day in the file would make equal sources differ


def package_zip(sources: Path = ROOT / "lib", folder: Path = CACHE / "package") -> Path:
    """The path of headgate-DIGEST.zip, written if there is none for the present sources.

    The zips of the last few versions stay: executors of a job that still runs may ask for theirs.
    """
    files = {
        path.relative_to(sources).as_posix(): path.read_bytes()
        for path in sorted((sources / "headgate").rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    content = hashlib.sha256()
    for name, source in files.items():
        content.update(f"{name}\0{len(source)}\0".encode())
        content.update(source)
    target = folder / f"headgate-{content.hexdigest()[:12]}.zip"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_zip(target, files)
    os.utime(target)
    for old in sorted(folder.glob("headgate-*.zip"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
    return target


def write_zip(target: Path, files: dict[str, bytes]) -> None:
    """Write beside the target and rename: a reader never sees half a zip."""
    part = target.with_suffix(f".part{os.getpid()}")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), source, zipfile.ZIP_DEFLATED)
    part.replace(target)
