"""The page on fidelity against the code: its places and counts."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
KINDS = ("as printed", "as released", "differs", "in part")


class Row(NamedTuple):
    """A statement of a paper and what became of it."""

    paper: str
    where: str
    statement: str
    kind: str
    evidence: str

    @property
    def places(self):
        """All code spans of the evidence."""
        return re.findall(r"`([^`]+)`", self.evidence)


def rows(text):
    """The cells of the tables of `text`, without their heads."""
    lines = text.splitlines()
    rules = [at for at, line in enumerate(lines) if re.fullmatch(r"[|\-:]+", line)]
    heads = {at + step for at in rules for step in (-1, 0)}
    table = [line for at, line in enumerate(lines) if line.startswith("|") and at not in heads]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table]


def statements():
    """A paper's two tables: the second one has no column for the kind, since all is as printed."""
    for section in PAGE.split("\n## ")[1:]:
        paper = re.split(r"[ ,]", section, maxsplit=1)[0]
        for where, statement, *kind, evidence in rows(section.split("\n### ")[0]):
            yield Row(paper, where, statement, *kind or ["as printed"], evidence)


ROWS = list(statements())


def exists(place):
    """Whether `path` or `path:name` is there; of a path with stars, whether all its files have the
    name: a class, function, constant or key."""
    path, _, name = place.partition(":")
    last = re.escape(name.rpartition(".")[2])
    defined = re.compile(rf"(class|def) {last}\b|^\s*{last} =|[\s{{]{last}:", re.MULTILINE)
    found = list(ROOT.glob(path))
    return bool(found) and all(not name or defined.search(file.read_text()) for file in found)


def test_every_statement_has_a_place_that_exists_and_the_summary_counts_the_rows():
    assert all(row.where and row.statement and row.kind in KINDS and row.places for row in ROWS)
    assert [row for row in ROWS if not all(map(exists, row.places))] == []
    for gone in ("gone.py", "gpo.py:Gone", "gpo.py:GPO.gone"):
        assert not exists(f"src/manymatch/networks/pooling/{gone}")
    kinds = {row.paper: [] for row in ROWS} | {"All": [row.kind for row in ROWS]}
    for row in ROWS:
        kinds[row.paper].append(row.kind)
    counts = {
        name: [str(count) for count in (len(listed), *map(listed.count, KINDS))]
        for name, listed in kinds.items()
    }
    assert {name: cells for name, *cells in rows(PAGE.split("\n## ")[0])} == counts
