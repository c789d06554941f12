"""A stage's work in parts, made one after another or on several machines, and joined by the stage.

What a stage goes through (images, batches of captions, shards) is dealt out like cards: part 2/4
takes the second of every four. `manymatch STAGE ... --part 2/4` writes `2-of-4-IDENTITY` to a
folder outside DVC's outputs; the stage without --part joins what it finds there. The identity is
a hash of everything that the part's content depends on: a part of other inputs, settings or source
code is never joined, and one that was made on another machine is, if all of this is the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from manymatch.system.errors import ConfigError
from manymatch.system.files import remove
from manymatch.system.progress import say

Item = TypeVar("Item")
_GIVEN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_NAME = re.compile(r"[0-9]{1,6}-of-([0-9]{1,6})-[0-9a-f]{16}")


@dataclass(frozen=True)
class Part:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def read(cls, text: str) -> Part:
        """`text` is K/N; anything else is a `ConfigError`."""
        found = _GIVEN.fullmatch(text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise ConfigError(f"--part {text}: expected K/N, K from 1 to N, such as 1/4")
        return cls(number, count)

    def takes(self, index: int) -> bool:
        """Whether item `index` (from 0) is in this part."""
        return index % self.count == self.number - 1

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Those of `items` that are in this part."""
        return items[self.number - 1 :: self.count]

    def refuse_empty(self, items: Sized, what: str) -> None:
        """A `ConfigError` if this part has no `items`."""
        if not items:
            raise ConfigError(
                f"--part {self.number}/{self.count}: there are fewer {what} than parts; "
                "divide into fewer"
            )


WHOLE = Part(1, 1)
"""The one part that is everything."""


@dataclass(frozen=True)
class Parts:
    """Where the parts of one stage's output lie, and the one to make (None: the whole output)."""

    folder: Path
    wanted: Part | None = None

    @contextlib.contextmanager
    def making(self, identity: Callable[[Part], str]) -> Iterator[Path | None]:
        """Yield where to write the part to make; None if it is there already. Whoever makes the
        same part meanwhile is waited for.

        Raises:
            ConfigError: the folder cannot be made, such as behind a link to nowhere.
        """
        assert self.wanted is not None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.folder}: cannot be made ({error.strerror})") from None
        path = self._path(self.wanted, identity)
        with _alone(path):
            if there := path.exists():
                say(f"{path}: is there already")
            yield None if there else path

    @contextlib.contextmanager
    def joining(self, identity: Callable[[Part], str]) -> Iterator[list[Path]]:
        """Yield the parts that together are the whole, in order, or none if they are not all
        there. They are removed after a block that succeeds: it has joined them."""
        found = self._complete(identity)
        yield found
        for path in found:
            remove(path)

    def _complete(self, identity: Callable[[Part], str]) -> list[Path]:
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        counts = sorted({int(found[1]) for name in names if (found := _NAME.fullmatch(name))})
        for count in counts:
            parts = (Part(number, count) for number in range(1, count + 1))
            # Stops at the first that is not there: an identity may take reading many images.
            paths = list(takewhile(Path.exists, (self._path(part, identity) for part in parts)))
            if len(paths) == count:
                say(f"{self.folder}: joining {count} parts")
                return paths
        if counts:
            say(f"{self.folder}: ignored; not all parts of these inputs and settings are there")
        return []

    def _path(self, part: Part, identity: Callable[[Part], str]) -> Path:
        return self.folder / f"{part.number}-of-{part.count}-{identity(part)[:16]}"


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of `path`, a file beside it that is removed as soon as `path` is there."""
    lock = path.with_name(f"{path.name}.lock")
    with lock.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{path}: waiting for the process that makes it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
        if path.exists():
            lock.unlink(missing_ok=True)


def identity_of(code: str, *facts: Any) -> str:
    """SHA-256 of everything that decides a result: the hash of the `code` (`system.code_hash`), and
    `facts` that JSON can hold."""
    return hashlib.sha256(json.dumps([code, *facts]).encode()).hexdigest()
