"""The hash of the code that a result depends on.

From entry modules this module follows imports through the package, also imports inside functions,
from definition to definition: a function, a class or a constant counts if an entry can reach its
name. Comments, docstrings, layout and imports for type checkers do not count, so only a change
of what is computed changes the hash.

Code that is looked up by name (a method, a data set) is an entry of its own. The table of such
names is left out, so a new name changes the hash of no other: a table is every constant of a
module that imports `import_module`. The package's version counts only as an entry of its own,
`manymatch:__version__`. A definition that mentions `__file__` reads files beside its module, so
these files count.
"""

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from manymatch.util.errors import ConfigError

NAME = "manymatch"
VERSION = "__version__"
_PACKAGE = Path(__file__).parents[1]


class Definition(NamedTuple):
    """The top-level `name` of a module; None stands for the whole module."""

    module: str
    name: str | None = None


@functools.cache
def code_hash(*entries: str) -> str:
    """SHA-256 of the code of this package that `entries` can reach; see `Code.listing`."""
    return hashlib.sha256(installed().listing(*entries).encode()).hexdigest()


@functools.cache
def installed() -> "Code":
    """The code of the package that runs."""
    return Code(_PACKAGE)


class Code:
    """The code of the package in the folder `package`; each module is parsed once."""

    def __init__(self, package: Path) -> None:
        self._package = package
        self._modules: dict[str, _Module] = {}
        self._known_needs: dict[Definition, list[Definition]] = {}

    def listing(self, *entries: str) -> str:
        """One line for each module or data file that counts: its name and the hash of its code.

        Args:
            entries: modules (`manymatch.training.train`), or single definitions in one
                (`manymatch.config.params:Captions`). A module may come from outside the package.
        """
        names: dict[str, set[str]] = {}
        reached: set[Definition] = set()
        waiting = [Definition(*entry.split(":")) for entry in entries]
        while waiting:
            definition = waiting.pop()
            if definition not in reached:
                reached.add(definition)
                module = self._module(definition.module)
                own = module.bindings if definition.name is None else [definition.name]
                names.setdefault(definition.module, set()).update(own)
                if definition not in self._known_needs:
                    self._known_needs[definition] = list(self._needs(definition))
                waiting += self._known_needs[definition]
        dumps = {module: "\n".join(sorted(self._dumps(module, names[module]))) for module in names}
        lines = [f"{module} {_short_hash(dumps[module].encode())}" for module in sorted(names)]
        return "\n".join([*lines, *self._data(names)]) + "\n"

    def _needs(self, definition: Definition) -> Iterator[Definition]:
        """The definitions that one definition mentions."""
        module = self._module(definition.module)
        if definition.name is None:
            yield from (Definition(definition.module, name) for name in module.bindings)
        for statement in module.statements(definition.name):
            if isinstance(statement, ast.ImportFrom):
                targets = self._imported(statement, definition.module)
                yield from (target for target in targets if target.name)
            else:
                yield from self._mentioned(statement, definition.module)

    def _mentioned(self, node: ast.AST, importer: str) -> Iterator[Definition]:
        """The definitions that a piece of code mentions. Of `files.write_json`, where `files` is a
        module, the definition `write_json` alone."""
        attribute = node.attr if isinstance(node, ast.Attribute) else None
        root = node.value if isinstance(node, ast.Attribute) else node
        bindings = self._module(importer).bindings
        if isinstance(root, ast.Name) and root.id in bindings:
            yield Definition(importer, root.id)
            for statement in bindings[root.id]:
                if isinstance(statement, ast.ImportFrom):
                    for target in self._imported(statement, importer):
                        if not target.name:
                            yield self._inside(target.module, attribute)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from self._imported(node, importer)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self._mentioned(child, importer)

    def _imported(self, node: ast.Import | ast.ImportFrom, importer: str) -> Iterator[Definition]:
        """The package's own definitions that an import statement names."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                module, name = alias.name, None
            else:
                module, name = self._source(node, importer), alias.name
            roots = NAME, importer.partition(".")[0]
            if module.partition(".")[0] not in roots or name == VERSION:
                continue
            yield self._inside(module, name)

    def _inside(self, module: str, name: str | None) -> Definition:
        """The definition or the module that is called `name` in `module`."""
        if name is None or name in self._module(module).bindings:
            return Definition(module, name)
        inner = f"{module}.{name}"
        return Definition(inner if self._file(inner) else module)

    def _source(self, node: ast.ImportFrom, importer: str) -> str:
        """The absolute name of the module that an import takes names from."""
        if not node.level:
            return node.module or ""
        file = self._file(importer)
        is_package = file is not None and file.name == "__init__.py"
        parent = importer if is_package else importer.rpartition(".")[0]
        return importlib.util.resolve_name("." * node.level + (node.module or ""), parent)

    def _dumps(self, module: str, names: set[str]) -> set[str]:
        code = self._module(module)
        return {dump for name in [None, *names] for dump in code.dumps(name)}

    def _data(self, names: dict[str, set[str]]) -> list[str]:
        """A line for each data file beside modules whose reached definitions mention `__file__`."""
        data_files = {
            path: path.relative_to(self._package if module.split(".")[0] == NAME else file.parent)
            for module, own in names.items()
            if any("id='__file__'" in dump for dump in self._dumps(module, own))
            and (file := self._file(module))
            for path in file.parent.rglob("*")
            if path.is_file() and path.suffix not in (".py", ".pyc")
        }
        return [
            f"{name} {_short_hash(path.read_bytes())}" for path, name in sorted(data_files.items())
        ]

    def _module(self, name: str) -> "_Module":
        if name not in self._modules:
            file = self._file(name)
            try:
                self._modules[name] = _parse(file.read_bytes()) if file else _Module()
            except (SyntaxError, ValueError) as fault:
                raise ConfigError(f"{file}: not Python ({fault}). Correct the file") from None
        return self._modules[name]

    def _file(self, module: str) -> Path | None:
        """The source file of a module or package; None if there is no such module."""
        first, *parts = module.split(".")
        if first != NAME:
            spec = importlib.util.find_spec(module)
            return Path(spec.origin) if spec and spec.origin else None
        path = self._package.joinpath(*parts)
        candidates = (path / "__init__.py", path.with_suffix(".py"))
        return next((file for file in candidates if file.is_file()), None)


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass
class _Module:
    """The top-level statements of a module, by the names that they bind. The statements under None
    bind no name; they count as soon as any name of the module is reached."""

    bindings: dict[str, list[ast.stmt]] = field(default_factory=dict)
    actions: list[ast.stmt] = field(default_factory=list)
    _dumps: dict[str | None, list[str]] = field(default_factory=dict)

    def statements(self, name: str | None) -> list[ast.stmt]:
        return [*self.bindings.get(name or "", ()), *self.actions]

    def dumps(self, name: str | None) -> list[str]:
        if name not in self._dumps:
            self._dumps[name] = [_dump(statement) for statement in self.statements(name)]
        return self._dumps[name]


@functools.cache
def _parse(source: bytes) -> _Module:
    module = _Module()
    body = (node for node in ast.parse(source).body if not _is_ignored(node))
    statements = list(_single_imports(body))
    is_registry = any(
        isinstance(node, ast.ImportFrom) and node.names[0].name == "import_module"
        for node in statements
    )
    for statement in statements:
        names = list(_bound(statement))
        if is_registry and isinstance(statement, ast.Assign | ast.AnnAssign):
            statement = ast.Pass()
        for name in names:
            module.bindings.setdefault(name, []).append(statement)
        if not names:
            module.actions.append(statement)
    return module


def _single_imports(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, with one statement for each imported name."""
    for statement in statements:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield ast.ImportFrom(statement.module, [alias], statement.level)
        elif isinstance(statement, ast.Import):
            yield from (ast.Import([alias]) for alias in statement.names)
        else:
            yield statement


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def _is_ignored(node: ast.AST) -> bool:
    """Whether a statement is a docstring (of a module, class, function or attribute), or imports
    for type checkers alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _dump(value: object) -> str:
    """A syntax tree as text, the same for every version of Python: empty fields are left out."""
    if isinstance(value, list):
        return ",".join(_dump(item) for item in value if not _is_ignored(item))
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = [
        f"{name}={_dump(item)}"
        for name, item in ast.iter_fields(value)
        if item not in (None, []) and name not in ("ctx", "kind", "type_comment")
    ]
    return f"{type(value).__name__}({' '.join(fields)})"
