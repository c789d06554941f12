"""Changes of settings that a run makes before its first stage.

DVC's stages read their settings from files: `presets/DATASET/PRESET.yaml` (the preset of a model)
and `params.yaml` (all other settings). So an override is written into its file, as `dvc exp run -S`
does, and stays there. Files, models and metrics then agree: `git diff` shows the change, `dvc
metrics diff` shows its effect, and `git checkout FILE` reverts it. A run without overrides reads
the files as they are. Nothing is written unless all changes are valid.

While a run that changed files works, other runs of the checkout wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML

from manymatch.config.layout import Layout
from manymatch.config.params import Params, read_params
from manymatch.config.preset import Preset, preset_path, read_preset, setting_after
from manymatch.config.strict import read_yaml, validate, yaml_value
from manymatch.system import files
from manymatch.system.errors import ConfigError, nearest
from pipelines import process

LAYOUT = Layout()
_LOCK = Path(".dvc", "tmp", "settings.lock")


@dataclass(frozen=True)
class Change:
    """The new `value` of a dotted `key` in a settings file."""

    file: Path
    key: str
    value: Any


def overridden(overrides: Sequence[str], preset: Path | None = None) -> list[Change]:
    """The changes that texts `KEY=VALUE` or `FILE:KEY=VALUE` ask for.

    A key without a file belongs to `preset` if a preset has such a setting (`training.epochs`),
    else to `params.yaml` (`shards.images_per_shard`). An unknown key is a `ConfigError`.
    """
    return [_change(text, preset) for text in overrides]


def _change(text: str, preset: Path | None) -> Change:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"override '{text}': expected KEY=VALUE, such as training.epochs=2")
    file, _, key = name.rpartition(":")
    path = _settings_file(file, text) if file else _file_of(key, preset, text)
    return Change(path, key, yaml_value(value, f"override '{text}'"))


def _settings_file(name: str, text: str) -> Path:
    known = [str(LAYOUT.params), *map(str, sorted(LAYOUT.presets.glob("*/*.yaml")))]
    if name not in known:
        raise ConfigError(f"override '{text}': no settings file '{name}'{nearest(name, known)}")
    return Path(name)


def _file_of(key: str, preset: Path | None, text: str) -> Path:
    first = key.partition(".")[0]
    if preset and first in Preset.model_fields:
        return preset
    if first in Params.model_fields:
        return LAYOUT.params
    known = {*Params.model_fields, *(Preset.model_fields if preset else ())}
    raise ConfigError(f"override '{text}': unknown setting '{first}'{nearest(first, known)}")


def named(dataset: str, preset: str) -> list[Change]:
    """The names that `params.yaml` lacks so far: with them `preset` has its stages on `dataset`."""
    params = read_params(LAYOUT.params)
    if f"{dataset}-{preset}" in params.warm_starts:
        return []
    features = read_preset(preset_path(LAYOUT.presets, dataset, preset)).features
    names = {"datasets": dataset, "presets": preset, "features": features}
    return [
        Change(LAYOUT.params, key, [*getattr(params, key), name])
        for key, name in names.items()
        if name not in getattr(params, key)
    ]


@contextlib.contextmanager
def settled(
    wanted: Callable[[], list[Change]],
    tell: Callable[[str], None],
    judge: Callable[[Path], object] = lambda copy: None,
) -> Iterator[None]:
    """Run the block with all changes of `wanted()` in the files, and tell each change.

    Args:
        wanted: the changes; called again once the files can no longer change.
        tell: receives each message.
        judge: called with a copy of the changed settings and dvc.yaml; raises `ConfigError` if they
            do not suit the run.

    Raises:
        ConfigError: a setting is unknown or does not fit, or `judge` refuses. Nothing is written.
    """
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("a") as lock:
        _take(lock.fileno(), fcntl.LOCK_SH, "for a run that changed settings to end", tell)
        if _missing(wanted()):
            _take(lock.fileno(), fcntl.LOCK_EX, "for other runs to end, to change settings", tell)
            _apply(_missing(wanted()), tell, judge)
        _tell_differences(tell)
        yield


def _take(lock: int, kind: int, purpose: str, tell: Callable[[str], None]) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(f"waiting {purpose}")
        fcntl.flock(lock, kind)


def _missing(changes: list[Change]) -> list[Change]:
    """The changes that are not in the files yet."""
    return [change for change in changes if _get(_load(change.file), change.key) != change.value]


def _apply(
    changes: list[Change], tell: Callable[[str], None], judge: Callable[[Path], object]
) -> None:
    notes = [
        f"{change.file}: {change.key} is now {change.value} (was "
        f"{_get(_load(change.file), change.key)}) and stays so; "
        f"'git checkout {change.file}' reverts the file"
        for change in changes
    ]
    ordered = sorted(changes, key=lambda change: str(change.file))
    by_file = groupby(ordered, key=lambda change: change.file)
    texts = {file: _changed(file, list(group)) for file, group in by_file}
    _check(texts, judge)
    for file, text in texts.items():
        files.write_text(file, text)
    for note in notes:
        tell(note)


def _changed(file: Path, changes: list[Change]) -> str:
    """The file's text with the changes; comments and order stay."""
    value = _load(file)
    for change in changes:
        _put(value, change.key.split("."), change.value, f"{file}: {change.key}")
    if file == LAYOUT.params:
        validate(Params, _plain(value), str(file))
    else:
        changed = validate(Preset, _plain(value), str(file))
        stated_setting = setting_after(read_preset(file), changed)
        if stated_setting != changed.setting:
            value["setting"] = stated_setting
    return _text(value)


def _plain(value: Any) -> Any:
    """The value as plain YAML, without comments."""
    return yaml.safe_load(_text(value))


def _text(value: Any) -> str:
    stream = io.StringIO()
    _yaml().dump(value, stream)
    return stream.getvalue()


def _check(texts: dict[Path, str], judge: Callable[[Path], object]) -> None:
    """Run `manymatch check` and `judge` in a copy of all settings with the changed files."""
    with tempfile.TemporaryDirectory() as copy:
        files.write_text(Path(copy, ".dvc", "config"), "[core]\nno_scm = true\n")
        for name in (LAYOUT.params, LAYOUT.presets, Path("experiments"), Path("dvc.yaml")):
            if name.is_dir():
                shutil.copytree(name, Path(copy, name))
            elif name.is_file():
                shutil.copy(name, copy)
        for file, text in texts.items():
            Path(copy, file).write_text(text, encoding="utf-8")
        output: list[str] = []
        if process.run(["manymatch", "check"], output.append, folder=Path(copy)):
            raise ConfigError(output[-1].removeprefix("error: "))
        judge(Path(copy))


def _tell_differences(tell: Callable[[str], None]) -> None:
    """Name the settings files that differ from the last commit, so that no result is a surprise."""
    command = ["git", "diff", "--name-only", "HEAD", "--", "params.yaml", "presets"]
    answer = subprocess.run(command, capture_output=True, text=True)
    for name in answer.stdout.split():
        tell(f"{name} differs from the last commit; this run uses it as it is")


def _yaml() -> YAML:
    """A reader and writer that keeps unchanged lines as they are."""
    yaml_file = YAML()
    yaml_file.preserve_quotes = True
    yaml_file.width = 4096
    yaml_file.indent(mapping=2, sequence=4, offset=2)
    yaml_file.representer.add_representer(
        type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return yaml_file


def _load(file: Path) -> Any:
    read_yaml(file)  # reports an invalid file in one line
    return _yaml().load(file.read_text(encoding="utf-8"))


def _get(value: Any, key: str) -> Any:
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(value: Any, path: list[str], setting: Any, where: str) -> None:
    for part in path[:-1]:
        value = value.setdefault(part, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: '{part}' is a value, not a group of settings")
    value[path[-1]] = setting
