"""The output of a stage in parts, which several machines can make and the stage then joins.

The items of a stage (images, batches of captions, shards) are dealt out like cards: part 2/4 takes
the second of every four. `manymatch STAGE ... --part 2/4` writes `2-of-4-IDENTITY` to a folder
outside DVC's outputs. The stage without --part joins the parts in this folder. IDENTITY is a hash
of everything that the content of a part depends on. So parts that were made from other inputs,
settings or source code are never joined, and parts from other machines can be.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from manymatch.util.errors import ConfigError
from manymatch.util.files import remove
from manymatch.util.locks import lock_path, locked
from manymatch.util.progress import say
from manymatch.util.seal import seal_path

Item = TypeVar("Item")
_GIVEN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_NAME = re.compile(r"[0-9]{1,6}-of-([0-9]{1,6})-[0-9a-f]{16}")


@dataclass(frozen=True)
class Part:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def read(cls, text: str) -> "Part":
        """The part that `text` names as K/N. Any other text is a `ConfigError`."""
        match = _GIVEN.fullmatch(text)
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count:
            raise ConfigError(f"--part {text}: expected K/N with K from 1 to N, such as 1/4")
        return cls(number, count)

    def takes(self, index: int) -> bool:
        """Whether item `index` (from 0) is in this part."""
        return index % self.count == self.number - 1

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """The `items` that are in this part."""
        return items[self.number - 1 :: self.count]

    def refuse_empty(self, items: Sized, what: str) -> None:
        """A `ConfigError` if this part has no `items`."""
        if not items:
            raise ConfigError(
                f"--part {self.number}/{self.count}: there are fewer {what} than parts. "
                "Divide into fewer parts"
            )


WHOLE = Part(1, 1)
"""The only part of an output that is not divided."""


@dataclass(frozen=True)
class Parts:
    """The folder with the parts of one output, and the part to make (None: the whole output)."""

    folder: Path
    wanted: Part | None = None

    @contextlib.contextmanager
    def making(self, identity: Callable[[Part], str]) -> Iterator[Path | None]:
        """Yield the path to write the wanted part to, or None if the part is already finished.

        Waits while another process makes the same part.

        Raises:
            ConfigError: the folder cannot be created, for example because of a dangling link.
        """
        assert self.wanted is not None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.folder}: cannot be created ({error.strerror})") from None
        path = self._path(self.wanted, identity)
        with locked(lock_path(path), path):
            finished = path.exists()
            if finished:
                say(f"{path}: this part is already finished")
            yield None if finished else path

    @contextlib.contextmanager
    def joining(self, identity: Callable[[Part], str]) -> Iterator[list[Path]]:
        """Yield the parts that together are the whole output, in order; no part if one is missing.

        The parts are removed after a block that succeeds, because the block has joined them.
        """
        parts = self._complete(identity)
        yield parts
        for path in parts:
            remove(path)
            remove(seal_path(path))

    def _complete(self, identity: Callable[[Part], str]) -> list[Path]:
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        counts = sorted({int(match[1]) for name in names if (match := _NAME.fullmatch(name))})
        for count in counts:
            parts = (Part(number, count) for number in range(1, count + 1))
            # Stops at the first missing part: an identity may require reading many images.
            paths = list(takewhile(Path.exists, (self._path(part, identity) for part in parts)))
            if len(paths) == count:
                say(f"{self.folder}: joining {count} parts")
                return paths
        if counts:
            say(
                f"{self.folder}: ignored, because parts with the present inputs, settings and code "
                "are missing"
            )
        return []

    def _path(self, part: Part, identity: Callable[[Part], str]) -> Path:
        return self.folder / f"{part.number}-of-{part.count}-{identity(part)[:16]}"


def identity_of(code: str, *facts: Any) -> str:
    """SHA-256 of everything that decides a result: the hash of the `code` (`util.code_hash`), and
    `facts` that JSON can hold."""
    return hashlib.sha256(json.dumps([code, *facts]).encode()).hexdigest()
