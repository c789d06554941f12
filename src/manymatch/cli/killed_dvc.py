"""What a `dvc` that was killed has left half written, with which every later `dvc` would end."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
from filelock import FileLock, Timeout

from manymatch.util import files
from manymatch.util.progress import say

_SECONDS = 30.0
"""How long a process of DVC is waited for. It holds its locks only while it reads or writes."""
_HALF = "because a dvc that was killed has left half of it"


def mend(project: Path) -> None:
    """Put in order what DVC writes in the folder `project`: its table of the files in use, and
    `dvc.lock`. Users of files that have ended leave the table, because DVC warns of each. What
    DVC's stages write has locks of its own.

    Where a process of DVC works, nothing is changed: it writes the whole file.
    """
    own = project / ".dvc" / "tmp"
    table, lock = own / "rwlock", project / "dvc.lock"
    if table.is_file():
        with suppress(Timeout), FileLock(own / "rwlock.lock", timeout=_SECONDS):
            try:
                users = json.loads(table.read_bytes())
                working = _running_users(users)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
                table.unlink(missing_ok=True)
                say(f"{table}: removed, {_HALF}")
            else:
                if working != {"write": {}, "read": {}} | users:
                    files.write_text(table, json.dumps(working))
    if lock.is_file() and _is_cut_off(lock):
        with suppress(Timeout), FileLock(own / "lock", timeout=_SECONDS):
            if _is_cut_off(lock):
                _restore(lock, own / "dvc.lock.damaged")


def _running_users(users: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The processes of `users` that still run, by the file that they write or read."""
    writing, reading = users.get("write", {}), users.get("read", {})
    alive = {
        path: [user for user in readers if psutil.pid_exists(user["pid"])]
        for path, readers in reading.items()
    }
    return {
        "write": {path: user for path, user in writing.items() if psutil.pid_exists(user["pid"])},
        "read": {path: readers for path, readers in alive.items() if readers},
    }


def _is_cut_off(lock: Path) -> bool:
    """Whether the file is not what DVC writes. A conflict of a merge is for the user."""
    try:
        from dvc.schema import COMPILED_LOCKFILE_SCHEMA
        from voluptuous import Invalid
    except ImportError:  # the extra "pipeline" is not installed
        return False
    content = lock.read_bytes()
    try:
        COMPILED_LOCKFILE_SCHEMA(yaml.safe_load(content))
    except (yaml.YAMLError, Invalid):
        return b"<<<<<<<" not in content
    return False


def _restore(lock: Path, damaged: Path) -> None:
    """Take the committed file, or none, and keep the cut file as `damaged`. DVC's cache has the
    results of the stages that are lost."""
    lock.replace(damaged)
    try:
        command = ["git", "show", f"HEAD:./{lock.name}"]
        committed = subprocess.run(command, cwd=lock.parent, capture_output=True, check=True)
        files.write_text(lock, committed.stdout.decode())
        say(f"{lock}: replaced by the committed file, {_HALF} (kept as {damaged})")
    except (FileNotFoundError, subprocess.CalledProcessError):  # no git, or not committed
        say(f"{lock}: removed, {_HALF} (kept as {damaged})")
