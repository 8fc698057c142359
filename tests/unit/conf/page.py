"""The keys on the page of the configuration."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
_ROW = re.compile(r"^\| (`[\w.]+`(?:, `[\w.]+`)*) \| ([^|\n]+) \| [^|\n]*\|", re.MULTILINE)


def documented_defaults() -> dict[str, str]:
    """The default of every key in the tables below the page's first, that of the files.

    A row has one key, or several with a default each.
    """
    _, _, sections = PAGE.read_text("utf-8").partition("\n## ")
    return {
        key.strip("`"): default
        for keys, defaults in _ROW.findall(sections)
        for key, default in zip(keys.split(", "), defaults.split(", "), strict=True)
    }
