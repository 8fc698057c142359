"""What headgate needs may be used and passed on by everybody: no licence asks that programs around it be opened."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest

NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
PERMISSIVE = re.compile(r"MIT|BSD|Apache|PSF|Python Software Foundation|Zlib|CC0")
COPYLEFT = re.compile(r"GPL|General Public|MPL|Mozilla|EUPL|CDDL|SSPL")


def needed(*names: str) -> dict[str, Distribution]:
    """Distributions and all that they need, without extras, and without what is not for this Python or system."""
    found: dict[str, Distribution] = {}
    to_do = [(name, "") for name in names]
    while to_do:
        name, condition = to_do.pop()
        name = re.sub(r"[-_.]+", "-", name).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if not condition:
                raise
            continue
        asked = (NAME.match(one) for one in found[name].requires or () if "extra ==" not in one)
        to_do += [(one[1], one.string.partition(";")[2]) for one in asked if one is not None]
    return found


def licence(found: Distribution) -> str:
    """As the package states it: an expression, else a line of text and classifiers."""
    stated = found.metadata
    classifiers = [one for one in stated.get_all("Classifier", []) if one.startswith("License")]
    return stated.get("License-Expression") or " ".join([(stated.get("License") or "")[:80], *classifiers])


def is_permissive(text: str) -> bool:
    return bool(PERMISSIVE.search(text)) and not COPYLEFT.search(text)


def test_all_that_headgate_needs_is_permissive():
    found = needed("headgate", "pulsar-client", "confluent-kafka")
    assert {"pyspark", "deltalake", "markupsafe"} <= found.keys()
    others = [(name, licence(one)) for name, one in found.items() if not is_permissive(licence(one))]
    assert [("certifi", "MPL-2.0")] == [(name, text.split()[0]) for name, text in others]  # a list of certificates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT OR Apache-2.0", True),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        (" License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)", False),
        ("", False),
    ],
)
def test_licences_by_name(text, expected):
    assert expected is is_permissive(text)


def test_what_is_not_installed_is_no_licence():
    with pytest.raises(PackageNotFoundError):
        needed("no-such-package")
