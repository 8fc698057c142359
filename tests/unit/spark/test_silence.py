"""What a job says of an input that does not answer: step tables."""

import pytest

from headgate.spark.silence import PATIENCE_S, Silence

ASKING, WORKING = "Getting offsets from KafkaV2[Subscribe[t]]", "Processing new data"
FROM_S = 1000.0
INTERVAL_S = 2
LONG_S = PATIENCE_S + INTERVAL_S


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(0, 1, ASKING), (LONG_S, 1, ASKING)], []),
        ([(0, 1, ASKING), (LONG_S + 1, 1, ASKING)], ["has not answered for 18 s: KafkaV2[Subscribe[t]]"]),
        ([(0, 1, ASKING), (LONG_S + 1, 1, WORKING)], []),
        ([(0, 1, ASKING), (LONG_S - 1, 2, ASKING), (LONG_S + 1, 2, ASKING)], []),
        ([(0, 1, ASKING), (LONG_S + 1, 1, WORKING), (LONG_S + 2, 1, ASKING)], ["has not answered for 19 s"]),
        (
            [(0, 1, ASKING), (20, 1, ASKING), (30, 1, ASKING), (31, 2, ASKING)],
            ["for 20 s", "answers again, after 31 s"],
        ),
        (
            [(0, 1, ASKING), (20, 1, ASKING), (21, 2, ASKING), (22, 3, ASKING), (42, 3, ASKING)],
            ["for 20 s", "again, after 21 s", "for 20 s"],
        ),
    ],
    ids=["in time", "too long", "a long batch", "an answer between", "a batch, then silence", "once", "once more"],
)
def test_silence_is_told_once_and_so_is_its_end(looks: list[tuple[float, int, str]], expected: list[str]) -> None:
    told: list[str] = []
    status = ""
    silence = Silence(lambda: status, told.append, INTERVAL_S)
    for at_s, sign, now in looks:
        status = now
        silence.look(sign, FROM_S + at_s)

    assert len(told) == len(expected)
    assert all(words in text for words, text in zip(expected, told, strict=True)), told
