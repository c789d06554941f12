"""The page on fidelity against the code: its places, rows and counts."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from manymatch.config.preset import read_preset

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
KINDS = ("as printed", "as released", "differs", "in part")
PAPERS = ("DivE", "SwAMP", "MSRM", "MaxMatch", "CORA", "PCME++")


class Row(NamedTuple):
    """A statement of a paper and what became of it."""

    paper: str
    where: str
    statement: str
    kind: str
    evidence: str

    def places(self):
        """All code spans of the evidence."""
        return re.findall(r"`([^`]+)`", self.evidence)

    def reason(self):
        """The evidence without its places."""
        return re.sub(r"`[^`]+`", "", self.evidence).strip(" ,;.")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_lines(text):
    """The rows of the tables of `text`, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = [at for at, line in enumerate(lines) if re.fullmatch(r"[|\-:]+", line)]
    heads = {at + step for at in rules for step in (-1, 0)}
    return [line for at, line in enumerate(lines) if at not in heads]


def statements():
    """A paper's two tables: the second one has no column for the kind, since all is as printed."""
    for section in PAGE.split("\n## ")[1:]:
        paper = re.split(r"[ ,]", section, maxsplit=1)[0]
        for line in table_lines(section.split("\n### ")[0]):
            where, statement, *kind, evidence = cells(line)
            yield Row(paper, where, statement, *kind or ["as printed"], evidence)


ROWS = list(statements())


def test_every_statement_has_a_place_that_exists_and_a_reason_if_it_is_not_as_printed():
    assert all(row.where and row.statement and row.kind in KINDS for row in ROWS)
    assert [row for row in ROWS if not row.places()] == []
    differing = [row for row in ROWS if row.kind in ("differs", "in part")]
    assert [row for row in differing if len(row.reason().split()) <= 5] == []
    assert [row for row in ROWS if not all(map(exists, row.places()))] == []


def test_the_summary_counts_the_rows():
    summary = {row[0]: row[1:] for row in map(cells, table_lines(PAGE.split("\n## ")[0]))}
    kinds = {paper: [row.kind for row in ROWS if row.paper == paper] for paper in PAPERS}
    assert all(kinds.values()) and sum(map(len, kinds.values())) == len(ROWS)
    kinds["All"] = [row.kind for row in ROWS]
    assert summary == {
        paper: [str(count) for count in (len(listed), *map(listed.count, KINDS))]
        for paper, listed in kinds.items()
    }
    of_code = sum(row.where in ("released code", "SCAN", "HowTo100M", "PCME") for row in ROWS)
    assert f"Of these rows {of_code} are statements of released code" in PAGE


def test_every_reproduced_preset_says_what_its_paper_leaves_open():
    parts = PAGE.split("\n### What the papers leave open: ")[1:]
    sections = {part.split("\n", 1)[0]: part.split("\n## ")[0] for part in parts}
    stated = {
        "DivE": ("dive",),
        "SwAMP": ("swamp", "swamp_video"),
        "MSRM": ("msrm",),
        "MaxMatch": ("maxmatch",),
        "CORA": ("cora",),
        "baselines": ("vsepp", "vse_infinity", "pvse", "pcme"),
    }
    assert stated.keys() == sections.keys()
    presets = {path: read_preset(path) for path in (ROOT / "presets").glob("*/*.yaml")}
    for paper, methods in stated.items():
        patterns = re.findall(r"`([^` ]+/[^` ]+)`", sections[paper])
        listed = {path for pattern in patterns for path in ROOT.glob(f"presets/{pattern}.yaml")}
        for path, preset in presets.items():
            if preset.setting == "reproduced" and preset.method in methods:
                assert path in listed, path
                assert "leaves open, and what is taken: docs/fidelity.md" in path.read_text(), path


def exists(reference):
    """Whether `path` or `path:name` is there; of a path with stars, whether all its files have the
    name."""
    path, _, name = reference.partition(":")
    files = sorted(ROOT.glob(path))
    return bool(files) and all(not name or has_name(file, name) for file in files)


def has_name(file, name):
    return name in python_names(file) if file.suffix == ".py" else has_key(file, name)


@cache
def python_names(file):
    """The classes, functions and constants of a module, and its classes' own as CLASS.NAME."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = set(defined(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{name}" for name in defined(node.body)}
    return frozenset(names)


def defined(body):
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def has_key(file, key):
    """Whether a YAML file has the dotted key `key`."""
    value = content(file)
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


@cache
def content(file):
    """The content of a YAML file."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", ["gone.py", "gpo.py:Gone", "gpo.py:GPO.gone"])
def test_a_place_that_is_gone_is_noticed(place):
    assert not exists(f"src/manymatch/networks/pooling/{place}")
    assert not exists("presets/*/dive.yaml:training.gone")
