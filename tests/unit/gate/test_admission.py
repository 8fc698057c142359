"""Whom the gate takes in: step tables."""

import pytest

from headgate.gate.admission import Admission, Refusal, source_of

CONNECTIONS, HANDSHAKES, PER_ADDRESS = Refusal.CONNECTIONS, Refusal.HANDSHAKES, Refusal.HANDSHAKES_PER_ADDRESS


Steps = list[tuple[str, int, str, Refusal | None]]
ON_THEIR_WAY: Steps = [
    ("arrive", 1, "a", None),
    ("arrive", 2, "a", None),
    ("arrive", 3, "a", PER_ADDRESS),
    ("arrive", 4, "b", None),
    ("arrive", 5, "c", HANDSHAKES),
]
JOINED_AND_LEFT: Steps = [
    ("arrive", 1, "a", None),
    ("arrive", 2, "a", None),
    ("join", 1, "", None),
    ("arrive", 3, "a", None),
    ("arrive", 4, "a", PER_ADDRESS),
    ("leave", 1, "", None),
    ("arrive", 4, "a", PER_ADDRESS),
    ("leave", 2, "", None),
    ("leave", 2, "", None),
    ("arrive", 4, "a", None),
    ("arrive", 5, "a", PER_ADDRESS),
]
TWO_JOIN: Steps = [
    ("arrive", 1, "a", None),
    ("arrive", 2, "a", None),
    ("arrive", 3, "b", None),
    ("join", 1, "", None),
    ("join", 2, "", None),
    ("join", 3, "", CONNECTIONS),
    ("arrive", 4, "c", CONNECTIONS),
    ("leave", 1, "", None),
    ("leave", 1, "", None),
    ("join", 3, "", None),
    ("arrive", 4, "c", CONNECTIONS),
]


@pytest.mark.parametrize("steps", [ON_THEIR_WAY, JOINED_AND_LEFT, TWO_JOIN])
def test_places_are_taken_and_given_back(steps: Steps) -> None:
    admission = Admission(connections=2, handshakes=3, handshakes_per_address=2)
    addresses = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
    for step, (does, connection, source, expected) in enumerate(steps):
        match does:
            case "arrive":
                assert admission.arrive(connection, addresses[source]) == expected, step
            case "join":
                assert admission.join(connection) == expected, step
            case _:
                admission.leave(connection)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("127.0.0.2", "127.0.0.2"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
    ],
)
def test_a_source_is_an_ipv4_address_or_a_64(address: str, source: str) -> None:
    assert source_of(address) == source
