"""The password of the service, in a Prefect profile (`prefect.toml` names the file).

Every command of Prefect in this folder reads the profile: the server, the worker, a run's engine
and what a person types. Only the user who started the service may read the file.
"""

import os
import secrets
import tomllib
from pathlib import Path

from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings

from manymatch.util.errors import ConfigError
from manymatch.util.files import replacing

_PROFILE = "manymatch"
_KEYS = CLIENT, SERVER = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
"""What a client of Prefect sends, and what the server asks for."""
_OVERRIDING = CLIENT, "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"


def settled(file: Path) -> str:
    """The password in `file`, with which this process and its children reach the server.

    A file that is missing, that other users may read or that holds no password is written anew.

    Raises:
        ConfigError: the environment has another password.
    """
    password = _read(file) or _write(file)
    refresh_global_settings_context()
    known = get_current_settings().api.auth_string
    if known is None or known.get_secret_value() != password:
        given = [name for name in _OVERRIDING if name in os.environ]
        raise ConfigError(
            f"{', '.join(given) or 'prefect.toml'}: Prefect does not read the service's password "
            f"from {file}. {'Unset the variables' if given else 'Set profiles_path to that file'}."
        )
    return password


def _read(file: Path) -> str | None:
    try:
        if file.is_symlink() or file.stat().st_mode & 0o077:
            return None
        profile = tomllib.loads(file.read_text(encoding="utf-8"))["profiles"][_PROFILE]
        (password,) = {profile[key] for key in _KEYS}
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return None
    return password if isinstance(password, str) and len(password) > len(_PROFILE) + 1 else None


def _write(file: Path) -> str:
    password = f"{_PROFILE}:{secrets.token_urlsafe(24)}"
    lines = [f'active = "{_PROFILE}"', f"[profiles.{_PROFILE}]"]
    lines += [f'{key} = "{password}"' for key in _KEYS]
    with replacing(file) as partial:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n")
    return password
