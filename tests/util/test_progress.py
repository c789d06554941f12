"""Long work says what it does; short work inside other work says nothing."""

import threading

import pytest

from manymatch.util import progress
from manymatch.util.progress import track, working


@pytest.fixture
def every_line(monkeypatch):
    """As if ten seconds passed at once."""
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)


def test_a_line_says_what_how_many_how_fast_and_how_long(every_line, capsys):
    assert list(track("ab", "letters", 2)) == ["a", "b"]
    out, err = capsys.readouterr()
    first, _, last = err.splitlines()
    assert first.startswith("letters: 1/2 (") and "/s" in first and "left" in first
    assert last.startswith("letters: 2 done") and out == ""


def test_a_step_without_parts_says_that_it_goes_on(monkeypatch):
    said = threading.Event()
    lines = []
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.001)
    monkeypatch.setattr(progress, "say", lambda line: (lines.append(line), said.set()))
    with working("a long step"):
        assert said.wait(timeout=30)
    assert lines[0].startswith("a long step: ")
