"""Lines of JSON in columns and one by one: the same rows, whatever the line and its neighbours."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.rows import json_lines
from headgate.rows.json_lines import LINES_AT_ONCE, json_blocks
from headgate.rows.json_object import MOST_DEPTH, NO_JSON

SHAPE = pa.schema([("n", pa.string()), ("i", pa.int64()), ("b", pa.bool_()), ("l", pa.list_(pa.int64()))])
KEYS = st.sampled_from(["n", "i", "b", "l", "other", "N", "\u00e9", ""])
NUMBERS = st.sampled_from(["0", "-0", "7", str(2**63 - 1), str(2**63), "1.0", "1e3", "1E999", "-1", "01", "NaN", "Inf"])
TEXTS = st.sampled_from(['"x"', '""', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud83d"', '"a\\u0000b"', '"Infra"', '"[{"'])
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["null", "true", "false", "tru", "'x'"])),
    lambda values: st.one_of(
        st.lists(values, max_size=3).map(lambda some: f"[{','.join(some)}]"),
        st.lists(values, max_size=2).map(lambda some: "{" + ",".join(f'"k":{one}' for one in some) + "}"),
    ),
    max_leaves=5,
)
OBJECTS = st.lists(st.tuples(KEYS, VALUES), max_size=4).map(
    lambda pairs: "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"
)
LINES = st.one_of(
    OBJECTS,
    st.tuples(OBJECTS, st.sampled_from([" ", "\t", "x", "{}", "}", "\x0b", ","])).map("".join),
    st.tuples(st.sampled_from([" ", "\t", "[", "\ufeff", "\x0b"]), OBJECTS).map("".join),
    st.sampled_from(['{"n":"x"', '"i":5}', "null", "[]", "5", "{", "}", '{"n":"}', '{"l":[{}', '{"n":1}{"n":2}']),
)


def told(lines):
    """What is said of each line: its columns as text, with what is nested, or why it has none."""
    found = []
    for block in json_blocks(pa.array(lines, pa.string()), [SHAPE]):
        for place in range(block.size):
            if place in block.defects:
                found.append(block.defects[place])
                continue
            values = {name: block.columns[name][place].as_py() for name in SHAPE.names}
            nested = {name for name in SHAPE.names if block.nested.get(name, np.zeros(block.size))[place]}
            found.append({name: _as_text(value, name in nested) for name, value in values.items()})
    return found


def _as_text(value, nested):
    """Typed values as the texts that a line alone gives, with a mark at those of lists and objects."""
    if isinstance(value, list):
        return "nested", json.dumps(value, separators=(",", ":"))
    if isinstance(value, bool):
        return json.dumps(value)
    return ("nested", value) if nested else None if value is None else str(value)


@given(st.lists(LINES, min_size=1, max_size=6))
@example(['{"n":"x"', '"i":5}', '{"n":1}{"n":2}'])
@example(['{"n":null, "n":"x"}', '{"n":"x", "n":null}'])
@example(['{"other":Inf}', '{"other":NaN}'])
def test_a_block_says_of_each_line_what_the_line_alone_says(lines):
    one_by_one = json_lines._line_by_line(pa.array(lines, pa.string()), SHAPE.names)
    alone = []
    for place in range(len(lines)):
        texts = {name: one_by_one.columns[name][place].as_py() for name in SHAPE.names}
        said = {name: ("nested", text) if one_by_one.nested[name][place] else text for name, text in texts.items()}
        alone.append(one_by_one.defects.get(place, said))
    assert alone == told(lines) == [one for line in lines for one in told([line])]


def test_a_block_with_an_odd_line_does_not_slow_the_others_down(monkeypatch):
    slow = []
    one_by_one = json_lines._line_by_line
    monkeypatch.setattr(
        json_lines, "_line_by_line", lambda lines, names: slow.append(len(lines)) or one_by_one(lines, names)
    )
    lines = ['{"i":1}'] * LINES_AT_ONCE * 3
    lines[LINES_AT_ONCE + 5] = "odd"
    assert [{"n": None, "i": "1", "b": None, "l": None}] * 2 == told(lines)[:: len(lines) - 1]
    assert [LINES_AT_ONCE] == slow


@pytest.mark.parametrize(("depth", "defect"), [(MOST_DEPTH, None), (MOST_DEPTH + 1, NO_JSON), (10**5, NO_JSON)])
def test_brackets_may_stand_in_one_another_up_to_a_depth(depth, defect):
    deep = '{"other":' + "[" * (depth - 1) + "]" * (depth - 1) + ', "i": 1}'
    many = '{"n": "' + "[" * 10**4 + '", "i": 1, "other": [' + ",".join(["[]"] * 10**4) + "]}"
    (first, second) = told([deep, many])
    assert defect == (first if isinstance(first, str) else None)
    assert "1" == second["i"]
    assert [first] == told([deep])
    assert [first, NO_JSON] == told([deep, "odd"])
