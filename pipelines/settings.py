"""What a run changes in the settings before it starts, written where it belongs and said aloud.

DVC's stages read their settings from files: `presets/DATASET/METHOD.yaml` (the preset of a model)
and `params.yaml` (all the rest). So an override is written into its file, as `dvc exp run -S` does,
and stays there: files, models and metrics agree, `git diff` shows what was changed, `dvc metrics
diff` what it did, and `git checkout FILE` takes it back. A run without overrides takes the files as
they are. Nothing is written unless all of it is valid.

A run that changes files has the checkout to itself from then on; others wait for it to end.
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
    """A dotted `key` of a settings file that is to become `value`."""

    file: Path
    key: str
    value: Any


def overridden(overrides: Sequence[str], preset: Path | None = None) -> list[Change]:
    """The changes that texts `KEY=VALUE` or `FILE:KEY=VALUE` ask for.

    A key without a file belongs to `preset` if a preset has such a setting (`training.epochs`), to
    `params.yaml` if not (`shards.images_per_shard`). An unknown one is a `ConfigError`.
    """
    return [_change(text, preset) for text in overrides]


def _change(text: str, preset: Path | None) -> Change:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"override '{text}': expected KEY=VALUE, such as training.epochs=2")
    file, _, key = name.rpartition(":")
    place = _settings_file(file, text) if file else _owner(key, preset, text)
    return Change(place, key, yaml_value(value, f"override '{text}'"))


def _settings_file(name: str, text: str) -> Path:
    known = [str(LAYOUT.params), *map(str, sorted(LAYOUT.presets.glob("*/*.yaml")))]
    if name not in known:
        raise ConfigError(f"override '{text}': no such file of settings{nearest(name, known)}")
    return Path(name)


def _owner(key: str, preset: Path | None, text: str) -> Path:
    first = key.partition(".")[0]
    if preset and first in Preset.model_fields:
        return preset
    if first in Params.model_fields:
        return LAYOUT.params
    known = {*Params.model_fields, *(Preset.model_fields if preset else ())}
    raise ConfigError(f"override '{text}': unknown setting '{first}'{nearest(first, known)}")


def named(dataset: str, method: str) -> list[Change]:
    """What `params.yaml` lacks for the preset `method` on `dataset` to have its stages."""
    params = read_params(LAYOUT.params)
    if f"{dataset}-{method}" in params.warm_starts:
        return []
    preset = read_preset(preset_path(LAYOUT.presets, dataset, method))
    wanted = {"datasets": dataset, "methods": method, "features": preset.features}
    return [
        Change(LAYOUT.params, key, [*getattr(params, key), name])
        for key, name in wanted.items()
        if name not in getattr(params, key)
    ]


@contextlib.contextmanager
def settled(
    wanted: Callable[[], list[Change]],
    tell: Callable[[str], None],
    judge: Callable[[Path], object] = lambda copy: None,
) -> Iterator[None]:
    """Run the block with all changes of `wanted()` in the files; say what was changed.

    Raises `ConfigError` (one line, nothing written) if a setting is unknown or does not fit, or
    `judge` refuses a checkout with the changes: a copy of the settings and of dvc.yaml.
    """
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("a") as lock:
        _take(lock.fileno(), fcntl.LOCK_SH, "for a run that has changed settings to end", tell)
        if _missing(wanted()):
            _take(lock.fileno(), fcntl.LOCK_EX, "to change settings until other runs end", tell)
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
    """Those that the files do not have yet."""
    return [each for each in changes if _get(_load(each.file), each.key) != each.value]


def _apply(
    changes: list[Change], tell: Callable[[str], None], judge: Callable[[Path], object]
) -> None:
    notes = [
        f"{each.file}: {each.key} is now {each.value} (was {_get(_load(each.file), each.key)}) and "
        f"stays so; 'git checkout {each.file}' takes it back"
        for each in changes
    ]
    ordered = sorted(changes, key=lambda each: str(each.file))
    by_file = groupby(ordered, key=lambda each: each.file)
    texts = {file: _changed(file, list(group)) for file, group in by_file}
    _check(texts, judge)
    for file, text in texts.items():
        files.write_text(file, text)
    for note in notes:
        tell(note)


def _changed(file: Path, changes: list[Change]) -> str:
    """The file's text with the changes, its comments and order kept."""
    value = _load(file)
    for each in changes:
        _put(value, each.key.split("."), each.value, f"{file}: {each.key}")
    if file == LAYOUT.params:
        validate(Params, _plain(value), str(file))
    else:
        changed = validate(Preset, _plain(value), str(file))
        kept = setting_after(read_preset(file), changed)
        if kept != changed.setting:
            value["setting"] = kept
    return _text(value)


def _plain(value: Any) -> Any:
    """As other readers have it, without comments."""
    return yaml.safe_load(_text(value))


def _text(value: Any) -> str:
    stream = io.StringIO()
    _yaml().dump(value, stream)
    return stream.getvalue()


def _check(texts: dict[Path, str], judge: Callable[[Path], object]) -> None:
    """Let `manymatch check` and `judge` look at the changed files in a copy of all settings."""
    with tempfile.TemporaryDirectory() as copy:
        files.write_text(Path(copy, ".dvc", "config"), "[core]\nno_scm = true\n")
        for name in (LAYOUT.params, LAYOUT.presets, Path("experiments"), Path("dvc.yaml")):
            if name.is_dir():
                shutil.copytree(name, Path(copy, name))
            elif name.is_file():
                shutil.copy(name, copy)
        for file, text in texts.items():
            Path(copy, file).write_text(text, encoding="utf-8")
        said: list[str] = []
        if process.run(["manymatch", "check"], said.append, folder=Path(copy)):
            raise ConfigError(said[-1].removeprefix("error: "))
        judge(Path(copy))


def _tell_differences(tell: Callable[[str], None]) -> None:
    """Say which settings are not the committed ones: nobody should be surprised by them."""
    command = ["git", "diff", "--name-only", "HEAD", "--", "params.yaml", "presets"]
    found = subprocess.run(command, capture_output=True, text=True)
    for name in found.stdout.split():
        tell(f"{name} differs from the last commit; this run takes it as it is")


def _yaml() -> YAML:
    """A reader and writer that leaves untouched lines as they are."""
    kept = YAML()
    kept.preserve_quotes = True
    kept.width = 4096
    kept.indent(mapping=2, sequence=4, offset=2)
    kept.representer.add_representer(
        type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return kept


def _load(file: Path) -> Any:
    read_yaml(file)  # its faults are one line
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
