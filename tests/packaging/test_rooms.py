"""The rooms of the package stand on floors: a room imports only rooms below it."""

import ast
import re
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import yaml

import manymatch

PACKAGE = Path(manymatch.__file__).parent
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
DRAWN_FLOORS = re.findall(r'f\d+\["(\d+): ([\w, ]+)"\]', PAGE)
FLOOR = {room: int(floor) for floor, rooms in DRAWN_FLOORS for room in rooms.split(", ")}
"""Room -> floor. Rooms of one floor do not import each other."""


def imports(path):
    """Names of modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module):
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if package == "manymatch" and room in FLOOR else None


def test_each_room_stands_on_a_floor():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(FLOOR)
    counts = f"has {len(FLOOR)} rooms on {max(FLOOR.values())} floors"
    assert counts in PAGE


def test_each_room_is_described_from_the_top_floor_down():
    described = re.findall(r"^\| (\w+) \| ", PAGE.split("## Where is what")[0], re.MULTILINE)
    assert [room for room in described if room != "Room"] == list(FLOOR)


def test_the_drawn_way_of_the_data_is_that_of_the_stages():
    """As far as what a stage needs, at first hand or through other stages."""
    stage = r'(\w+)(?:\["\w+<br>(\w+)"\])?'
    lines = [
        re.findall(stage, line)
        for line in PAGE.split("subgraph data")[1].split("\n  end")[0].splitlines()
        if "-->" in line
    ]
    drawn = nx.DiGraph(pair for line in lines for pair in pairwise(name for name, _ in line))
    assert {room for line in lines for _, room in line if room} <= set(FLOOR)
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    needs = nx.DiGraph(
        (before, after)
        for before, after in product(drawn, repeat=2)
        if any(
            _overlap(out, dep) for out in _outputs(stages[before]) for dep in stages[after]["deps"]
        )
    )
    assert nx.transitive_closure(drawn).edges == nx.transitive_closure(needs).edges


def _outputs(stage):
    for kind in ("outs", "plots", "metrics"):
        for out in stage.get(kind, []):
            yield out if isinstance(out, str) else next(iter(out))


def _overlap(one, other):
    return Path(one).is_relative_to(other) or Path(other).is_relative_to(one)


def test_the_places_on_the_page_exist():
    places = re.findall(r"`((?:src|tests|presets)/[\w/.]+)`", PAGE)
    places = [place for place in places if not re.search("[A-Z]{3}", place)]
    assert places and not [place for place in places if not (ROOT / place).exists()]


def test_no_room_imports_upward():
    upward = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        here = path.relative_to(PACKAGE).parts[0]
        for module in imports(path) if here in FLOOR else ():
            room = room_of(module)
            if room and room != here and FLOOR[room] >= FLOOR[here]:
                upward[f"{here} -> {room}"].add(f"{path.relative_to(PACKAGE)}: {module}")
    assert not upward


def test_the_ground_room_needs_no_large_library():
    large = {"torch", "prefect", "dvc", "lightning_fabric", "transformers", "spacy"}
    for path in (PACKAGE / "util").rglob("*.py"):
        assert not large & {module.partition(".")[0] for module in imports(path)}, path
