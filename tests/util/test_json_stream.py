"""Lists of JSON files read element by element, against the standard library."""

import json
import tracemalloc

import pytest

from manymatch.util import json_stream
from manymatch.util.errors import DataError
from manymatch.util.json_stream import begins_with, elements, list_elements

VALUE = {
    "info": {"note": '{"b": [1]} \\ " é ☃ 𝄞 \\ud83d \\\\udc00', "b": [0]},
    "a": [1, -2.5e3, "x]", None, True, [[]], {}, 1234567],
    "number": 12,
    "skipped": [{"b": [1, 2]}, "}"],
    "b": [{"k": [1.5, {"z": "\n"}]}, "é"],
    "empty": [],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.json"


def test_the_same_elements_as_the_standard_library(path, monkeypatch):
    expected = [(key, n, v) for key in ("a", "b") for n, v in enumerate(VALUE[key])]
    for style in ({}, {"indent": 2, "ensure_ascii": False}):
        path.write_text("\ufeff" + json.dumps(VALUE, **style) + " \n", encoding="utf-8")
        for size in (1, 2, 3, 7, 64, 2**18):
            monkeypatch.setattr(json_stream, "_READ_BYTES", size)
            assert list(elements(path, ("b", "a", "empty"))) == expected, size


def test_memory_does_not_grow_with_the_file(path):
    with path.open("w") as stream:
        stream.write('{"a": [')
        stream.writelines(f'{{"id": {n}, "text": "{"x" * 100}"}},' for n in range(20_000))
        stream.write("0]}")
    tracemalloc.start()
    count = sum(1 for _ in elements(path, ("a",)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_001 and peak < path.stat().st_size / 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"[1]", "expected a JSON object"),
        (b'{"a": 1}', "expected a list 'a'"),
        (b'{"a": [1,\n2,\n]}', "at or after a[2]: not valid JSON"),
        (b'{"a": [1\n', "at or after a[1]: not valid JSON"),
        (b'{"a": [1 2]}', "at or after a[1]: not valid JSON"),
        (b'{"a": [1]}\n}', "not valid JSON"),
        (b'{"a": ["caf\xe9"]}', "the text is not UTF-8"),
        (b'{"a": ["\xed\xa0\x80"]}', "the text is not UTF-8"),
        (b'{"a": [1, {"b": NaN}]}', "at or after a[1]: not valid JSON"),
        (b'{"a": [1, {"b": 1, "b": 2}]}', "at or after a[1]: the key 'b' occurs twice"),
        (b'{"a": [' + b"[" * 100_000, "inside each other"),
        (b'{"a": ["", "a \\ud83d dog"]}', "half a character, \\ud83d"),
        (b'\xef\xbb\xbf{"a": ["\\uDE00\\ud83d"]}', "half a character, \\uDE00"),
        (b'{"a": ["\\\\\\ud83d\\ud83d\\ude00"]}', "half a character, \\ud83d"),
        (b'{"a": [{"\\udfff": 1}]}', "half a character, \\udfff"),
        (b'{"b": "\\udbff", "a": []}', "half a character, \\udbff"),
    ],
)
def test_a_faulty_file_is_one_line(path, monkeypatch, content, words):
    path.write_bytes(content)
    for size in (1, 2**16):
        monkeypatch.setattr(json_stream, "_READ_BYTES", size)
        with pytest.raises(DataError) as caught:
            list(elements(path, ("a",)))
        line = str(caught.value)
        assert line.startswith(str(path)) and words in line and "\n" not in line


def test_a_list_at_the_top(path):
    path.write_text('\ufeff \n[1, {"a": [2]}, null]\n', encoding="utf-8")
    assert list(list_elements(path)) == [1, {"a": [2]}, None] and begins_with(path, b"[")
    for content, words in (
        (b'{"a": 1}', "expected a JSON list"),
        (b"[1] 2", r"\[1\]: not valid JSON"),
        (b'[1, {"b": 1, "b": 2}]', r"\[1\]: the key 'b' occurs twice"),
        (b"[" * 100_000, r"\[0\]: more than 100 lists"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=words):
            list(list_elements(path))
