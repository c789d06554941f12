"""Texts from outside are printed as one safe line, and long work says what it does."""

import threading
import time

from manymatch.util import progress
from manymatch.util.errors import ConfigError, one_line, printable, repeated
from manymatch.util.progress import say, track, working


def test_control_characters_are_escaped_and_a_long_line_keeps_its_start_and_end(capsys):
    for text, shown in (
        ("a caf\xe9, 犬", "a caf\xe9, 犬"),
        ("a\nerror: b", r"a\nerror: b"),
        ("\x1b[2J\x9b\0\x7f", r"\x1b[2J\x9b\x00\x7f"),
        ("\u202egpj.exe\u2066", r"\u202egpj.exe\u2066"),
        ("\udc80\u2028", r"\udc80\u2028"),
    ):
        say(text)
        assert capsys.readouterr().err == f"{shown}\n"
        assert str(ConfigError(text)) == one_line(text) == printable(text) == shown
    for sign in ("x", "\U000e0001"):
        line = one_line("start" + sign * 1_000_000 + "end")
        assert line.startswith("start") and line.endswith("end") and len(line) < 1100


def test_the_repeated_one_of_very_many_names_is_found_at_once():
    """A search through all names for each name would take an hour."""
    names = list(map(str, range(300_000)))
    assert repeated(names) is None and repeated([*names, "7", "5"]) == "7"


def test_a_line_says_what_how_many_how_fast_and_how_long(monkeypatch, capsys):
    """As if ten seconds passed at once."""
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    assert list(track("ab", "letters", 2)) == ["a", "b"]
    first, _, last = capsys.readouterr().err.splitlines()
    assert first.startswith("letters: 1/2 (") and "/s" in first and "left" in first
    assert last.startswith("letters: 2 done")


def test_a_step_without_parts_says_that_it_goes_on(monkeypatch):
    said = threading.Event()
    lines = []
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.001)
    monkeypatch.setattr(progress, "say", lambda line: (lines.append(line), said.set()))
    with working("a long step"):
        assert said.wait(timeout=30)
        with working("its part"):
            lines.clear()
            while len(lines) < 3:
                time.sleep(0.001)
        # A line of the outer step may have been on its way.
        assert all(line.startswith("its part: ") for line in lines[1:])
    with working("counted", lambda: "two left"):
        while not any(line.endswith(" s; two left") for line in lines):
            time.sleep(0.001)
