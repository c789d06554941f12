"""Where a file of a dataset comes from: a web address with mirrors, a `file:` address, a path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from manymatch.config.strict import Strict
from manymatch.fetching.transfer import Check, Expected, fetch
from manymatch.system.errors import ConfigError, SourceError

_WEB = ("http", "https")
_LONGEST_NAME = 200
"""Bytes; a file system takes 255, with the endings of what lies beside a download."""


class Source(Strict):
    """One file or folder. In params.yaml either its address alone or a mapping of these keys."""

    url: str
    """`https://...`, `http://...`, `file:PATH` or a path (relative to the current folder)."""
    mirrors: tuple[str, ...] = ()
    """Other addresses of the same file, tried in turn where the first does not answer."""
    size: Annotated[int, Field(ge=0)] | None = None
    """Bytes."""
    connections: Annotated[int, Field(ge=1, le=16)] = 4
    """At once to one host, for large files; hosts that give no parts of a file are asked once."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _addresses_make_sense(self) -> Source:
        for address in self.addresses:
            local_path(address)
        return self

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.url, *self.mirrors)

    @property
    def expected(self) -> Expected:
        return Expected(self.size, self.sha256)


def downloads(raw: Path, name: str) -> Path:
    """Where the downloads of dataset `name` wait, complete or not, while `raw` is being built."""
    return raw.parent / ".downloads" / name


def obtain(source: Source, what: str, folder: Path, check: Check | None = None) -> Path:
    """A local path with the content of `source`, checked against its size and checksum.

    What lies on this machine is used where it lies; what comes from the web is downloaded to
    `folder`, under the last part of its address. `what` names it in messages; a download without a
    checksum must pass `check`.
    """
    local = [path for path in map(local_path, source.addresses) if path is not None]
    for path in local:
        if path.exists():
            return _checked(path, source, what)
    web = [address for address in source.addresses if local_path(address) is None]
    if not web:
        tried = ", ".join(str(path) for path in local)
        raise SourceError(f"{what}: no such file or folder: {tried}; correct it in params.yaml")
    target = folder / file_name(web[0], what)
    fetch(web, target, replace(source.expected, check=check), what, source.connections)
    return target


def local_path(address: str) -> Path | None:
    """The path that a `file:` address or a plain path names; None for a web address."""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise ConfigError(f"{address}: not an address: {error}") from None
    if parts.scheme in _WEB:
        if not parts.hostname or parts.username is not None:
            raise ConfigError(f"{address}: expected http(s)://HOST/PATH without a user name")
        return None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(f"{address}: names another host; write file:///FOLDER/FILE")
        return _at_home(unquote(parts.path), address)
    if len(parts.scheme) > 1 and "//" in address:
        raise ConfigError(f"{address}: expected http:, https:, file: or a path")
    return _at_home(address, address)


def _at_home(path: str, address: str) -> Path:
    """With `~` and `~USER` replaced by their folders."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{address}: {error}") from None


def _checked(path: Path, source: Source, what: str) -> Path:
    if path.is_dir():
        if source.size is not None or source.sha256 is not None:
            raise ConfigError(f"{what}: {path} is a folder, which has no size or sha256 to check")
        return path
    fault = source.expected.fault(path)
    if fault:
        raise SourceError(f"{what}: {path}: {fault}; fetch it again or correct params.yaml")
    return path


def file_name(address: str, what: str) -> str:
    """What a download from `address` is called; a `ConfigError` that names `what` if nothing."""
    name = Path(unquote(urlsplit(address).path)).name
    if not name or name.startswith(".") or not name.isprintable():
        raise ConfigError(f"{what}: {address}: the address does not end in a file's name")
    if len(name.encode()) > _LONGEST_NAME:
        raise ConfigError(f"{what}: {address}: the address ends in too long a name for a file")
    return name
