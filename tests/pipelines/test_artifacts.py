"""What a run shows of its results."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines import artifacts

TABLE = ["| Path | Metric |", "|---|---|", "| cora.json | rsum |"]


@pytest.mark.parametrize(
    ("code", "output", "shown"),
    [
        (0, [*TABLE, ""], "\n".join(TABLE)),
        (0, [], "No metric differs from the last commit."),
        (255, ["ERROR: not a Git repository"], "The metrics could not be compared: ERROR: not a "),
        (255, [], "The metrics could not be compared: exit code 255"),
    ],
)
def test_a_failed_comparison_is_not_told_as_no_difference(
    monkeypatch: pytest.MonkeyPatch, code: int, output: list[str], shown: str
) -> None:
    def run(command: list[str], tell: Any) -> int:
        for line in output:
            tell(line)
        return code

    monkeypatch.setattr(artifacts.process, "run", run)
    assert artifacts._difference().startswith(shown)
