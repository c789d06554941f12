"""The versions of trained models, and which of them is in production.

A version is the output of a training that a commit of git names in dvc.lock: DVC's cache and its
remotes keep the weights, git keeps the metrics. `production.json` in the project's folder, a file
to commit, names for each data set the versions that were promoted, the present one last.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from manymatch.config.layout import Layout
from manymatch.config.names import ModelPath, Name
from manymatch.config.strict import Strict, validate
from manymatch.model.facts import FACTS
from manymatch.util.errors import ConfigError, ManyMatchError, StorageError, first_line, nearest
from manymatch.util.files import replacing, write_json
from manymatch.util.json_file import read_object
from manymatch.util.packages import package_folder

LOCK = "dvc.lock"
_STAGE = re.compile(r"\n  (?=[^\s#])")
"""Between two stages of dvc.lock, which DVC writes with two spaces."""


class Version(Strict):
    """One trained model.

    Attributes:
        model: DATASET/PRESET.
        md5: DVC's hash of the model's folder, with the ending .dir.
        commit: the first commit whose dvc.lock names the model; its date is `date`.
        data: DVC's hash of the shards that trained the model.
        metrics: the content of reports/metrics/DATASET/PRESET.json, empty before an evaluation.
    """

    model: ModelPath
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}\.dir$")]
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]
    date: str
    data: str
    metrics: dict[str, float] = Field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.model}@{self.md5[:8]}"


class _Promoted(Strict):
    promoted: dict[Name, Annotated[list[Version], Field(min_length=1)]]


def versions(layout: Layout, model: str) -> list[Version]:
    """The versions of DATASET/PRESET, or of all models of DATASET, in the order of their commits.

    Raises:
        ConfigError: git or its repository is missing.
    """
    history = _git(layout, "log", "--reverse", "--format=%H %cI", "--", LOCK).decode().split("\n")
    commits = [line.split() for line in history if line]
    folder = f"models/{model}" + ("" if "/" in model else "/")
    found: dict[tuple[str, str], Version] = {}
    evaluated: dict[tuple[str, str], str] = {}
    locks = _contents(layout, [f"{commit}:./{LOCK}" for commit, _ in commits])
    for (commit, date), lock in zip(commits, locks, strict=True):
        for block in _STAGE.split(lock):
            trained, read = _stage(block) if folder in block else ({}, {})
            for path, (md5, data) in trained.items():
                if path == folder or (folder[-1] == "/" and path.startswith(folder)):
                    name = path.removeprefix("models/")
                    new = Version(model=name, md5=md5, commit=commit, date=date, data=data)
                    found.setdefault((name, md5), new)
            for path, md5 in read.items():
                evaluated.setdefault((path.removeprefix("models/"), md5), commit)
    measured = [key for key in found if key in evaluated]
    names = [f"{evaluated[key]}:./reports/metrics/{key[0]}.json" for key in measured]
    for key, text in zip(measured, _contents(layout, names), strict=True):
        stated = json.loads(text or "{}").items()  # older files have groups too
        metrics = {name: value for name, value in stated if isinstance(value, int | float)}
        found[key] = found[key].model_copy(update={"metrics": metrics})
    return list(found.values())


@cache
def _stage(block: str) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """What a stage of dvc.lock trained, path -> hashes of the model and of the shards; and, if it
    evaluated a model, path -> hash of the model."""
    (stage,) = yaml.load(block, Loader=yaml.CSafeLoader).values()
    deps = {entry["path"]: entry.get("md5", "") for entry in stage.get("deps", [])}
    outs = {entry["path"]: entry.get("md5", "") for entry in stage.get("outs", [])}
    data = next((md5 for path, md5 in deps.items() if path.startswith("data/shards/")), "")
    trained = {
        path: (md5, data)
        for path, md5 in outs.items()
        if path.startswith("models/") and md5.endswith(".dir")
    }
    metrics = any(path.startswith("reports/metrics/") for path in outs)
    read = {path: md5 for path, md5 in deps.items() if metrics and path.startswith("models/")}
    return trained, read


def _git(layout: Layout, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", "-C", str(layout.root), *arguments]
    try:
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode(errors="replace").strip() or str(error)
        raise ConfigError(f"versions of models are commits of git, which says: {said}") from None


def _contents(layout: Layout, names: Sequence[str]) -> list[str]:
    """The contents of files in commits, each COMMIT:./PATH; "" where a commit has no such file."""
    out = _git(layout, "cat-file", "--batch", given="\n".join([*names, ""]).encode())
    texts = []
    for _ in names:
        head, _, out = out.partition(b"\n")
        kind, size = ([*head.split(), b"", b""])[1:3]
        length = int(size) + 1 if kind == b"blob" else 0
        texts.append(out[:length].decode())
        out = out[length:]
    return texts


def version(layout: Layout, name: str) -> Version:
    """The version DATASET/PRESET@HASH, of which some digits are enough; without @: the newest.

    Raises:
        ConfigError: there is no such version.
    """
    model, _, digits = name.partition("@")
    known = versions(layout, model)
    matching = [one for one in known if one.md5.startswith(digits) and one.model == model]
    if not matching:
        names = f" (known: {', '.join(map(str, known))})" if known else ""
        raise ConfigError(
            f"{name}: no such version{names}. Write DATASET/PRESET or DATASET/PRESET@HASH. A "
            f"training becomes a version when {LOCK} is committed after 'dvc repro'"
        )
    if digits and len(matching) > 1:
        raise ConfigError(f"{name}: several versions begin so. Write more digits of the hash")
    return matching[-1]


def promoted(layout: Layout) -> dict[str, list[Version]]:
    """Data set -> the versions that were promoted, the present one last.

    Raises:
        DataError, ConfigError: production.json is damaged.
    """
    path = layout.production
    return validate(_Promoted, read_object(path), str(path)).promoted if path.is_file() else {}


def promote(layout: Layout, new: Version, gate: tuple[str, float] | None) -> Version | None:
    """Put `new` into production; the version that was.

    Args:
        gate: a metric, and how many points less than the present version's are allowed.

    Raises:
        ManyMatchError: the gate refuses the version.
        StorageError: DVC cannot give the weights.
    """
    known = promoted(layout)
    dataset = new.model.partition("/")[0]
    earlier = known.get(dataset, [])
    present = earlier[-1] if earlier else None
    if gate and present:
        metric, points = gate
        for one in (new, present):
            if metric not in one.metrics:
                raise ConfigError(
                    f"--gate {metric}: {one} has no such metric{nearest(metric, one.metrics)}"
                )
        if new.metrics[metric] < present.metrics[metric] - points:
            other = ", on other data" if new.data != present.data else ""
            raise ManyMatchError(
                f"{new}: {metric} {new.metrics[metric]:.2f} is more than {points:g} points below "
                f"{present.metrics[metric]:.2f} of {present} in production{other}. Nothing changed"
            )
    restored(layout, new)
    if new != present:
        _write(layout, known | {dataset: [*earlier, new]})
    return present


def roll_back(layout: Layout, dataset: str) -> tuple[Version, Version]:
    """Put the version before the present one into production; both, the new one first.

    Raises:
        ConfigError: no version was promoted before.
    """
    known = promoted(layout)
    if len(known.get(dataset, [])) < 2:
        raise ConfigError(
            f"{dataset}: no version was in production before. Run 'manymatch models promote'"
        )
    *earlier, present = known[dataset]
    restored(layout, earlier[-1])
    _write(layout, known | {dataset: earlier})
    return earlier[-1], present


def in_production(layout: Layout, dataset: str | None = None) -> Path | None:
    """The folder of the version in production, of the only data set without `dataset`; None: there
    is none.

    Raises:
        StorageError: DVC cannot give the weights.
    """
    known = promoted(layout)
    if dataset is None and len(known) == 1:
        (dataset,) = known
    return restored(layout, known[dataset][-1]) if dataset in known else None


def restored(layout: Layout, version: Version) -> Path:
    """The folder of a version, got from DVC's cache or its remote if it is not there yet.

    Raises:
        StorageError: DVC cannot give the weights.
    """
    folder = layout.models / ".versions" / version.model / version.md5.removesuffix(".dir")
    if not (folder / FACTS).is_file():
        package_folder("dvc", "'manymatch[pipeline]'", "name the folder of a model")
        from dvc.api import DVCFileSystem

        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as partial:
            try:
                system = DVCFileSystem(rev=version.commit)
                system.get(f"models/{version.model}", str(partial), recursive=True)
            except Exception as error:  # DVC and its storage have errors of many libraries
                raise StorageError(
                    f"{version}: DVC cannot give the weights: {first_line(error)}. Run 'dvc fetch "
                    "--all-commits', or promote another version"
                ) from None
    return folder


def _write(layout: Layout, known: dict[str, list[Version]]) -> None:
    write_json(layout.production, _Promoted(promoted=known).model_dump(mode="json"))
