"""The password of the service: who can read it, and who uses it."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect.context import refresh_global_settings_context

from manymatch.util.errors import ConfigError
from pipelines import password

FILE = Path(".prefect", "service", "profiles.toml")
ASK = "from prefect.settings import get_current_settings as s; print({}.get_secret_value())"


@pytest.fixture(autouse=True)
def folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the settings of the service."""
    (tmp_path / "prefect.toml").write_text((root / "prefect.toml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(password.CLIENT, raising=False)
    yield
    monkeypatch.undo()
    refresh_global_settings_context()


def test_only_its_user_can_read_it_and_it_stays() -> None:
    first = password.settled(FILE)
    assert len(first) > 30 and first.startswith("manymatch:")
    assert stat.S_IMODE(FILE.stat().st_mode) == 0o600
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]
    assert password.settled(FILE) == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda: FILE.chmod(0o644),
        lambda: FILE.write_text(""),
        lambda: FILE.write_text('[profiles]\nmanymatch = "x"'),
        lambda: FILE.write_bytes(b"\xff"),
        lambda: FILE.write_text(FILE.read_text().replace("PREFECT_SERVER", "PREFECT_OTHER")),
        lambda: FILE.rename("elsewhere") and FILE.symlink_to("elsewhere"),
    ],
    ids=["readable by others", "empty", "no table", "no text", "without the server", "link"],
)
def test_a_file_that_is_damaged_or_readable_by_others_is_written_anew(
    damage: Callable[[], object],
) -> None:
    first = password.settled(FILE)
    damage()
    assert password.settled(FILE) != first
    assert stat.S_IMODE(FILE.lstat().st_mode) == 0o600


def test_every_command_in_the_folder_reads_it() -> None:
    secret = password.settled(FILE)
    for setting in ("s().api.auth_string", "s().server.api.auth_string"):
        done = subprocess.run([sys.executable, "-c", ASK.format(setting)], capture_output=True)
        assert done.stdout.decode().strip() == secret


@pytest.mark.parametrize("name", [password.CLIENT, "PREFECT_PROFILES_PATH", "PREFECT_PROFILE"])
def test_an_environment_with_another_password_is_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "other")
    with pytest.raises(ConfigError, match=rf"^{name}: [^\n]* Unset the variables\.$"):
        password.settled(FILE)
