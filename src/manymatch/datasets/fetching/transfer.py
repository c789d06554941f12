"""Download one file over HTTP from the first mirror that has it, and resume interrupted downloads.

For the file `NAME`, the bytes so far are in `NAME.partial`, and `NAME.json` says what they belong
to. The file itself appears only when it is complete and has the expected size and checksum.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from manymatch.datasets.fetching import http
from manymatch.datasets.fetching.disk import require_space
from manymatch.datasets.fetching.http import Final, Passing, Stale, Unreachable
from manymatch.util import files
from manymatch.util.errors import DataError, ManyMatchError, SourceError, StorageError
from manymatch.util.json_file import read_object
from manymatch.util.progress import say, track, working

_PAUSES: tuple[float, ...] = (1, 2, 4, 8, 16)
"""Seconds between the rounds over the mirrors."""
_ROUNDS_OFFLINE = 3
"""Rounds before giving up if no host can be reached and no byte arrived."""
_MEBIBYTE = 2**20
Check = Callable[[Path], None]
"""Reads a file. Raises a `ManyMatchError` if the file is not the expected one or is incomplete."""
Opener = Callable[[str, int, str | None], AbstractContextManager[http.Answer]]
"""Requests the bytes of a file, as `http.opened` does."""


@dataclass(frozen=True)
class Expected:
    """What is known about a file beforehand. Without a checksum, `check` reads the file. `most`:
    the most bytes of a file of unknown size."""

    size: int | None = None
    sha256: str | None = None
    check: Check | None = None
    most: int | None = None

    def fault(self, path: Path) -> str | None:
        """How the file at `path` differs from what is expected, in words; None if it does not."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"it has {size} bytes, expected {self.size}"
        if self.sha256 is None:
            try:
                if self.check:
                    self.check(path)
            except StorageError:
                raise
            except ManyMatchError as error:
                return str(error).replace(str(path), path.name.removesuffix(".partial"))
            return None
        with working(f"check the sha256 of {path.name}"):
            digest = files.sha256(path)
        return None if digest == self.sha256 else f"its sha256 is {digest}, expected {self.sha256}"


def fetch(
    urls: Sequence[str],
    target: Path,
    expected: Expected,
    what: str,
    *,
    opened: Opener = http.opened,
    advice: str = "Correct the source or name a mirror of it",
    quiet: bool = False,
) -> None:
    """Download `target` from the first of `urls` that serves it whole.

    Args:
        what: the name of the file in messages.
        opened: requests a file.
        advice: what to do if no mirror serves the file.
        quiet: nothing is said of a download of less than ten seconds.

    Raises:
        SourceError: no mirror serves the file. Names the fault of every mirror.
        StorageError: the disk is too small for the file of every mirror.
    """
    partial = files.partial_path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        if expected.sha256 and expected.fault(target) is None:
            return
        target.replace(partial)  # without a checksum the server is asked again
    with files.storage_errors(target):
        if not files.is_own(partial):  # a link: the bytes would be written elsewhere
            files.remove(partial)
    mirrors, before = list(urls), _size(partial)
    faults: dict[str, Passing | Final | StorageError] = {}  # the last of every mirror
    for number, pause in enumerate((*_PAUSES, None), start=1):
        for url in tuple(mirrors):
            try:
                Download(url, target, expected, opened, quiet).run()
                return
            except (Passing, Final, StorageError) as fault:
                faults[url] = fault
                if not isinstance(fault, Passing):  # this mirror never will
                    mirrors.remove(url)
        offline = all(isinstance(fault, Unreachable) for fault in faults.values())
        if offline and number >= _ROUNDS_OFFLINE and _size(partial) == before:
            advice = "Check the network, or name a file on this machine in params.yaml"
            break
        if not mirrors or pause is None:
            break
        say(f"{what}: {'; '.join(map(str, faults.values()))}; trying again in {pause:g} s")
        time.sleep(pause)
    too_large = [fault for fault in faults.values() if isinstance(fault, StorageError)]
    if too_large and len(too_large) == len(faults):
        raise too_large[0]
    # A query may contain a secret key.
    shown = {url: urlsplit(url)._replace(query="", fragment="").geturl() for url in faults}
    listed = "; ".join(f"{shown[url]}: {fault}" for url, fault in faults.items())
    raise SourceError(f"{what}: {listed}. {advice}")


class Download:
    """The download of `target` from `url`, and the bytes of an earlier, unfinished one."""

    def __init__(
        self,
        url: str,
        target: Path,
        expected: Expected,
        opened: Opener = http.opened,
        quiet: bool = False,
    ) -> None:
        self._url, self._target, self._expected = url, target, expected
        self._opened, self._quiet = opened, quiet
        self._path = files.partial_path(target)
        self._note = target.with_name(target.name + ".json")
        self._received, self._since = 0, time.monotonic()  # in the present window

    def resume_point(self) -> tuple[int, str | None]:
        """The byte to go on from, and the version of the file that the present bytes belong to.

        The bytes are used if they are of a known version at the same address. With a checksum this
        is left to the check of the finished file.
        """
        try:
            note = read_object(self._note)
        except DataError:  # missing or damaged
            note = {}
        version = note.get("validator")
        known = set(note) == {"url", "validator"} and note["url"] == self._url
        # A request cannot send other signs back.
        usable = isinstance(version, str) and version.isascii() and version.isprintable()
        version = version if known and usable else None
        return (_size(self._path) if version or self._expected.sha256 else 0), version

    def run(self) -> None:
        """Download the file, and compare it with what is expected. Connects again as long as every
        connection brings new bytes.

        Raises:
            Passing, Final: this mirror does not serve the file.
            StorageError: the disk is too small.
        """
        resumed = again = False
        with files.storage_errors(self._target):
            while True:
                before = _size(self._path)
                try:
                    with self._opened(self._url, *self.resume_point()) as answer:
                        if not resumed:  # the wait for the first answer has a deadline of its own
                            self._received, self._since = 0, time.monotonic()
                        self._save(answer)
                    fault = self._expected.fault(self._path)
                    if fault is None:
                        self._path.replace(self._target)
                        return
                    if not (answer.start or resumed):
                        self._remove()
                        raise Final(fault)
                except Stale:
                    fault = "the file has changed on the server"
                except Passing as cut:
                    size = _size(self._path)
                    if size <= before:
                        raise
                    say(f"{self._target.name}: {cut}; continuing after {size} bytes")
                    resumed = True
                    time.sleep(_PAUSES[0])
                    self._count(0)
                    continue
                self._remove()  # the bytes may be of two versions of the file
                if again:  # several hosts behind one name may have different versions
                    raise Passing(f"{fault}, each time")
                say(f"{self._target.name}: {fault}; starting again")
                resumed, again = False, True

    def _remove(self) -> None:
        files.remove(self._path)
        files.remove(self._note)

    def _count(self, received: int) -> None:
        """Count bytes of all connections. A server that is too slow over a window is `Passing`."""
        self._received += received
        if (seconds := time.monotonic() - self._since) < http.WINDOW:
            return
        if self._received < http.LEAST_SPEED * seconds:
            raise Passing(
                f"only {self._received:,} bytes in {seconds:.0f} s, slower than "
                f"{http.LEAST_SPEED:,} bytes per second"
            )
        self._received, self._since = 0, time.monotonic()

    def _save(self, answer: http.Answer) -> None:
        """Write the body into the partial file. A body that is too short is a `Passing` fault."""
        size, total, name = self._expected.size, answer.total, self._target.name
        if None not in (size, total) and size != total:
            raise Final(f"it has {total} bytes, expected {size}")
        if total and self._expected.most and total > self._expected.most:
            raise Final(f"it has {total} bytes, at most {self._expected.most} are expected")
        missing = 0 if total is None else total - answer.start
        require_space(self._target.parent, missing, name)
        # No link with the temporary name is followed.
        opened = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with os.fdopen(opened, "r+b") as stream:
            stream.truncate(answer.start)
            stream.seek(answer.start)
            files.write_json(self._note, {"url": self._url, "validator": answer.version})
            steps = None if total is None else -(-missing // _MEBIBYTE)
            limit = total or size or self._expected.most
            steps_done = self._copy(answer, stream)
            for _ in track(steps_done, f"{name} (MiB)", total=steps, quiet=self._quiet):
                try:
                    if limit is not None and stream.tell() > limit:
                        raise Final(f"it has more than the expected {limit} bytes")
                    if total is None:
                        require_space(self._target.parent, _MEBIBYTE, name)
                except (Final, StorageError):  # leave the disk to the next mirror
                    self._remove()
                    raise
            received = stream.tell()
        if total is not None and received < total:
            raise Passing(f"connection cut after {received} of {total} bytes")

    def _copy(self, answer: http.Answer, stream: BinaryIO) -> Iterator[None]:
        """Write the body; yield after every mebibyte. The bytes before a cut are kept."""
        written = 0
        for block in answer.blocks:
            written += stream.write(block)
            self._count(len(block))
            if written >= _MEBIBYTE:
                written -= _MEBIBYTE
                yield
        yield


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
