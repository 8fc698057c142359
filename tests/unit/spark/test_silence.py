"""What a job says of an input that does not answer: step tables."""

import pytest

from headgate.spark.silence import ASKED_S, AT_WORK_S, Silence

ASKING, WORKING = "Getting offsets from KafkaV2[Subscribe[t]]", "Processing new data"
WAITING, NEXT = "Waiting for data to arrive", "Waiting for next trigger"
FROM_S = 1000.0
INTERVAL_S = 2
ASKED, AT_WORK = ASKED_S + INTERVAL_S, AT_WORK_S + INTERVAL_S


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(0, 1, ASKING), (ASKED, 1, ASKING)], []),
        ([(0, 1, ASKING), (ASKED + 1, 1, ASKING)], ["the input has not answered for 18 s: KafkaV2[Subscribe[t]];"]),
        ([(0, 1, ASKING), (ASKED - 1, 2, ASKING), (ASKED + 1, 2, ASKING)], []),
        ([(0, 1, WORKING), (AT_WORK, 1, WORKING)], []),
        ([(0, 1, WORKING), (AT_WORK + 1, 1, WORKING)], ["no batch has ended for 33 s (Processing new data)"]),
        ([(0, 1, ASKING), (ASKED + 1, 1, WORKING), (ASKED + 2, 1, ASKING)], ["has not answered for 19 s"]),
        ([(0, 1, ASKING), (20, 1, ASKING), (40, 1, ASKING), (41, 2, ASKING)], ["for 20 s", "goes on, after 41 s"]),
        (
            [(0, 1, ASKING), (20, 1, ASKING), (21, 2, ASKING), (22, 3, ASKING), (42, 3, ASKING)],
            ["for 20 s", "goes on, after 21 s", "for 20 s"],
        ),
        ([(0, 1, WAITING), (AT_WORK + 1, 1, WAITING), (AT_WORK + 2, 1, ASKING), (2 * AT_WORK, 1, NEXT)], []),
        ([(0, 1, WAITING), (14, 1, NEXT), (ASKED + 1, 1, ASKING), (ASKED + 15, 1, ASKING)], ["for 18 s"]),
        ([(0, 1, ASKING), (20, 1, ASKING), (41, 1, WAITING)], ["for 20 s", "goes on, after 41 s"]),
    ],
    ids=[
        "in time",
        "no answer",
        "an answer between",
        "a batch in time",
        "a long batch",
        "a batch, then no answer",
        "once",
        "once more",
        "idle for long",
        "idle, then no answer",
        "no answer, then idle",
    ],
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
