"""The rooms of the package stand on floors: a room imports only rooms below it."""

import ast
import re
from collections import defaultdict
from pathlib import Path

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
