"""The source of a file of a data set: a web address with mirrors, a `file:` address or a path."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from manymatch.config.strict import Strict
from manymatch.datasets.base import Need
from manymatch.datasets.fetching.transfer import Check, Expected, fetch
from manymatch.util.errors import ConfigError, SourceError
from manymatch.util.regular_file import open_regular

_WEB = ("http", "https")
_LONGEST_NAME = 200
"""Bytes. File systems allow 255, and the notes beside a download have longer names."""


class Source(Strict):
    """One file or folder. In params.yaml it is an address, or a mapping with these keys."""

    url: str
    """`https://...`, `http://...`, `file:PATH` or a path (relative to the current folder)."""
    mirrors: tuple[str, ...] = ()
    """Other addresses of the same file, tried in turn if the first does not serve it."""
    size: Annotated[int, Field(ge=0)] | None = None
    """Bytes."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _addresses_make_sense(self) -> "Source":
        for address in self.addresses:
            local_path(address)
        return self

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.url, *self.mirrors)


def downloads(raw: Path, name: str) -> Path:
    """The folder of the downloads of the data set `name`, until its `raw` folder is complete."""
    return raw.parent / ".downloads" / name


def obtain(source: Source, what: str, folder: Path, check: Check | None = None) -> Path:
    """A local path with the content of `source`, after a check of its size and checksum.

    Args:
        what: the name of the source in messages.
        folder: downloads are written here, named after the last part of their address. A file on
            this machine is used where it is.
        check: checks a download that has no checksum.

    Raises:
        ConfigError, SourceError: the source is not valid, missing or damaged.
        StorageError: the disk is too small.
    """
    for path in _local_paths(source):
        if path.exists():
            return _checked(path, source, what)
    need = needed(source, what)
    if need and need.fault:
        raise need.fault
    web = [address for address in source.addresses if local_path(address) is None]
    target = folder / file_name(web[0], what)
    fetch(web, target, Expected(source.size, source.sha256, check), what)
    return target


def needed(source: Source, what: str) -> Need | None:
    """The need of `source`, called `what` in messages; None if this machine has it."""
    local = _local_paths(source)
    if any(path.exists() for path in local):
        return None
    if len(local) < len(source.addresses):
        return Need(what, source.size)
    tried = ", ".join(map(str, local))
    fault = f"{what}: no such file or folder: {tried}. Correct the path in params.yaml"
    return Need(what, fault=SourceError(fault))


def _local_paths(source: Source) -> list[Path]:
    return [path for path in map(local_path, source.addresses) if path is not None]


def local_path(address: str) -> Path | None:
    """The path of a `file:` address or a plain path; None for a web address. `~` and `~USER` are
    home folders."""
    if not address.strip():
        raise ConfigError("params.yaml: sources: an empty path or address. Write one, or null")
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise ConfigError(f"{address}: not an address: {error}") from None
    if parts.scheme in _WEB:
        if not parts.hostname or parts.username is not None:
            raise ConfigError(f"{address}: expected http(s)://HOST/PATH without a user name")
        return None
    is_file = parts.scheme == "file"
    if is_file and parts.netloc not in ("", "localhost"):
        raise ConfigError(f"{address}: the address names another host. Write file:///FOLDER/FILE")
    if not is_file and len(parts.scheme) > 1 and "//" in address:
        raise ConfigError(f"{address}: expected http:, https:, file: or a path")
    try:
        return Path(unquote(parts.path) if is_file else address).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{address}: {error}") from None


def _checked(path: Path, source: Source, what: str) -> Path:
    if path.is_dir():
        if source.size is not None or source.sha256 is not None:
            raise ConfigError(f"{what}: {path} is a folder, which has no size or sha256 to check")
        return path
    open_regular(path).close()
    if fault := Expected(source.size, source.sha256).fault(path):
        raise SourceError(
            f"{what}: {path}: {fault}. Download the file again or correct params.yaml"
        )
    return path


def file_name(address: str, what: str) -> str:
    """The file name of a download from `address`. Without one, a `ConfigError` names `what`."""
    name = Path(unquote(urlsplit(address).path)).name
    if not name or name.startswith(".") or not name.isprintable():
        raise ConfigError(f"{what}: {address}: the address does not end in a file's name")
    if len(name.encode()) > _LONGEST_NAME:
        raise ConfigError(f"{what}: {address}: the file name in the address is too long")
    return name
