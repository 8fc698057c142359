"""The words of a dead letter."""

import pytest

from headgate.conf import InputSettings
from headgate.throttle.faults import dead_letter, faults_of

KINDS_ALLOWED = "publish, dispatch, subscribe, unload or connection"
FAULTS = faults_of(InputSettings())
PLACE = {"raw": "the row", "source": "a file", "offset": 7}


def bits(*columns):
    """Set for every fault of these columns."""
    return sum(1 << position for position, fault in enumerate(FAULTS) if fault.column in columns)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"faults": 0, "defect": "no row"}, "no row"),
        ({"faults": bits("seq"), "got": {"seq": "x"}}, "seq: got x, allowed is a whole number of 64 bits"),
        ({"faults": bits("seq")}, "seq: got null, allowed is a whole number of 64 bits"),
        (
            {"faults": bits("kind"), "got": {"kind": " "}},
            f"kind: got ' ', allowed is {KINDS_ALLOWED}",
        ),
        (
            {"faults": bits("seq", "kind"), "got": {"seq": "1", "kind": "k", "broker": "b"}},
            f"seq: got 1, allowed is a whole number of 64 bits; kind: got k, allowed is {KINDS_ALLOWED}",
        ),
        ({"faults": bits("seq"), "defect": "no row"}, "no row"),
    ],
)
def test_a_reason_names_every_column_at_fault_or_the_defect_of_the_row(bad, reason):
    assert {"reason": reason, **PLACE} == dead_letter(FAULTS, bad | PLACE)


def test_what_is_not_known_of_the_place_is_null():
    assert {"reason": "r", "raw": None, "source": None, "offset": None} == dead_letter(
        FAULTS, {"faults": 0, "defect": "r"}
    )
