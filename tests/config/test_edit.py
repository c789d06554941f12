"""A changed settings file keeps everything that was not changed."""

import pytest

from manymatch.config.edit import edited
from manymatch.config.strict import read_yaml

BLOCK = "presets:  # what runs\n{0}- vsepp  # the baseline\n{0}- cora\n\n# chance\nseed: 1\n"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a: [x, y]  # why\nb: 1\n", ["x", "y", "z"], "a: [x, y, z] # why\nb: 1\n"),
        ("a: []\n", ["x"], "a: [x]\n"),
        ("a: [x, y]\n", ["y"], "a: [y]\n"),
        ("a: 1  # why\n", 2, "a: 2  # why\n"),
        ("a: 'x'\nb: \"y\"\n", 2, 'a: 2\nb: "y"\n'),
        ("b:\n    c:\n        d: 1\na: 1\n", 2, "b:\n    c:\n        d: 1\na: 2\n"),
        ("b: 1\n", ["x"], "b: 1\na: [x]\n"),
        ("a:\n- x # why\n# next\nb: 1\n", ["x"], "a:\n- x # why\n# next\nb: 1\n"),
        ("a: # why\n- x\n\nb: 1\n", ["x", "y"], "a: # why\n- x\n- y\n\nb: 1\n"),
    ],
)
def test_comments_order_and_style_stay(tmp_path, text, value, expected):
    file = tmp_path / "params.yaml"
    file.write_text(text)
    assert edited(file, {"a": value}) == expected


def test_a_list_with_an_entry_a_line_stays_so(tmp_path):
    file = tmp_path / "params.yaml"
    for indent in ("", "  ", "    "):
        file.write_text(BLOCK.format(indent))
        text = edited(file, {"presets": ["vsepp", "cora", "dive"]})
        assert text == BLOCK.format(indent).replace("- cora\n", f"- cora\n{indent}- dive\n")


def test_lines_after_a_group_stay_after_its_new_and_changed_entries(tmp_path):
    file = tmp_path / "params.yaml"
    file.write_text("a:\n  b:\n    c: 1 # why\n\n# About d.\nd: 2\n")
    for _ in range(2):
        file.write_text(edited(file, {"a.e": {"f": 3, "g": 4}}))
    added = "  e:\n    f: 3\n    g: 4\n"
    assert file.read_text() == f"a:\n  b:\n    c: 1 # why\n{added}\n# About d.\nd: 2\n"


@pytest.mark.parametrize("text", ["no", "on", "1:30", "1_000", "~", "a # b", "[", "", "'x'", "é"])
def test_texts_are_read_as_they_were_given(tmp_path, text):
    file = tmp_path / "params.yaml"
    file.write_text("a: [x]\nb: {}\n")
    file.write_text(edited(file, {"a": ["x", text], f"b.{text}": {"c": text}}))
    assert read_yaml(file) == {"a": ["x", text], "b": {text: {"c": text}}}


def test_every_settings_file_survives_reading_and_writing(root):
    for file in [root / "params.yaml", *(root / "presets").rglob("*.yaml")]:
        assert edited(file, {}) == file.read_text()
