"""The versions of trained models, and which of them is in production.

A version is the output of a training that a commit of git names in dvc.lock: DVC's cache and its
remotes keep the weights, git keeps the metrics. `production.json` in the project's folder, a file
to commit, names for each data set the versions that were promoted, the present one last.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from manymatch.config.layout import Layout
from manymatch.config.names import ModelPath, Name
from manymatch.config.strict import Strict, validate
from manymatch.util.errors import ConfigError, ManyMatchError, StorageError, first_line, nearest
from manymatch.util.files import replacing, write_json
from manymatch.util.json_file import read_object
from manymatch.util.locks import lock_path, locked
from manymatch.util.packages import extra, package_folder
from manymatch.util.progress import say
from manymatch.util.regular_file import resolved
from manymatch.util.seal import open_sealed

LOCK = "dvc.lock"
_STAGE = re.compile(r"\n  (?=[^\s#])")  # between two stages, as DVC writes dvc.lock
_say_once = cache(say)


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

    def folder(self, layout: Layout) -> Path:
        """The folder of the version, which may not be there yet."""
        return layout.models / ".versions" / self.model / self.md5.removesuffix(".dir")


class _Promoted(Strict):
    promoted: dict[Name, Annotated[list[Version], Field(min_length=1)]]


def versions(layout: Layout, model: str) -> list[Version]:
    """The versions of DATASET/PRESET, or of all models of DATASET, in the order of their commits;
    those that dvc.lock of HEAD names stand last. One line names each commit that cannot be read.

    Raises:
        ConfigError: git or its repository is missing.
    """
    if _git(layout, "rev-parse", "--is-shallow-repository").strip() == b"true":
        _say_once("this clone lacks older commits and their versions. Run 'git fetch --unshallow'")
    history = _git(layout, "log", "--reverse", "--format=%H %cI", "--", LOCK).decode().split("\n")
    commits = [line.split() for line in history if line]
    by_hash: dict[tuple[str, str], Version] = {}
    evaluated: dict[tuple[str, str], str] = {}
    named: dict[str, list[Version]] = {}
    *locks, head = _contents(
        layout, [f"{one}:./{LOCK}" for one in [*(commit for commit, _ in commits), "HEAD"]]
    )
    for (commit, date), lock in zip(commits, locks, strict=True):
        try:
            stages = [_stage(block) for block in _STAGE.split(lock) if f"models/{model}" in block]
            named[lock] = [
                Version(model=name, md5=md5, commit=commit, date=date, data=data)
                for trained, _ in stages
                for name, (md5, data) in trained.items()
                if f"{name}/".startswith(f"{model}/")
            ]
        except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError):
            _say_once(f"{commit[:8]}:{LOCK} cannot be read. The versions in it are left out")
            continue
        for new in named[lock]:
            by_hash.setdefault((new.model, new.md5), new)
        for _, read in stages:
            for key in read.items():
                evaluated.setdefault(key, commit)
    for new in named.get(head, ()):
        by_hash[new.model, new.md5] = by_hash.pop((new.model, new.md5))
    measured = [key for key in by_hash if key in evaluated]
    names = [f"{evaluated[key]}:./reports/metrics/{key[0]}.json" for key in measured]
    for key, name, text in zip(measured, names, _contents(layout, names), strict=True):
        try:
            stated = json.loads(text or "{}").items()  # older files have groups too
        except (ValueError, AttributeError, RecursionError):
            _say_once(f"{name}: not a JSON object, so {by_hash[key]} has no metrics")
            continue
        metrics = {
            metric: value
            for metric, value in stated
            if type(value) in (int, float) and abs(value) <= sys.float_info.max  # no NaN
        }
        by_hash[key] = by_hash[key].model_copy(update={"metrics": metrics})
    return list(by_hash.values())


@cache
def _stage(block: str) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """What a stage of dvc.lock trained, DATASET/PRESET -> hashes of the model and of the shards;
    and, if it evaluated a model, DATASET/PRESET -> hash of the model."""
    (stage,) = yaml.load(block, Loader=yaml.CSafeLoader).values()
    deps = {entry["path"]: entry.get("md5", "") for entry in stage.get("deps", [])}
    outs = {entry["path"]: entry.get("md5", "") for entry in stage.get("outs", [])}
    data = next((md5 for path, md5 in deps.items() if path.startswith("data/shards/")), "")
    trained, read = (
        {path[7:]: md5 for path, md5 in hashes.items() if path.startswith("models/")}
        for hashes in (outs, deps)
    )
    if not any(path.startswith("reports/metrics/") for path in outs):
        read = {}
    return {name: (md5, data) for name, md5 in trained.items() if md5.endswith(".dir")}, read


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
        texts.append(out[:length].decode(errors="replace"))
        out = out[length:]
    return texts


def version(layout: Layout, name: str) -> Version:
    """The version DATASET/PRESET@HASH, of which some digits are enough; without @: the one that
    dvc.lock of HEAD names, else the newest.

    Raises:
        ConfigError: there is no such version.
    """
    model, at, digits = name.partition("@")
    known = versions(layout, model)
    matching = [one for one in known if one.md5.startswith(digits or at) and one.model == model]
    if not matching:
        names = f" (known: {', '.join(map(str, known))})" if known else ""
        raise ConfigError(
            f"{name}: no such version{names}. Write DATASET/PRESET or DATASET/PRESET@HASH. A "
            f"training becomes a version when {LOCK} is committed after 'dvc repro'"
        )
    if digits and len(matching) > 1:
        raise ConfigError(f"{name}: several versions begin so. Write more digits of the hash")
    if not digits and _git(layout, "status", "--porcelain", "--", LOCK):
        say(f"{LOCK} has changes that are not committed. {matching[-1]} is of an earlier commit")
    return matching[-1]


def promoted(layout: Layout) -> dict[str, list[Version]]:
    """Data set -> the versions that were promoted, the present one last.

    Raises:
        DataError, ConfigError: production.json is damaged.
    """
    path = layout.production
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        return validate(_Promoted, read_object(path), str(path)).promoted
    except ManyMatchError as fault:
        raise type(fault)(f"{fault}. Restore it by git, or remove it and promote again") from None


def promote(layout: Layout, new: Version, gate: tuple[str, float] | None) -> Version | None:
    """Put `new` into production; the version that was. The `gate` is a metric, and how many points
    less than the present version's are allowed.

    Raises:
        ManyMatchError: the gate refuses the version.
        StorageError: DVC cannot give the weights.
    """
    known = promoted(layout)
    dataset = new.model.partition("/")[0]
    earlier = known.get(dataset, [])
    present = earlier[-1] if earlier else None
    if gate:
        metric, points = gate
        if present:  # the evaluation may have been committed after the promotion
            same = (one for one in versions(layout, present.model) if one.md5 == present.md5)
            present = next((one for one in same if one.metrics), present)
        for one in filter(None, (new, present)):
            if metric not in one.metrics:
                raise ConfigError(
                    f"--gate {metric}: {one} has no such metric{nearest(metric, one.metrics)}"
                )
        if present and new.metrics[metric] < present.metrics[metric] - points:
            other = ", on other data" if new.data != present.data else ""
            raise ManyMatchError(
                f"{new}: {metric} {new.metrics[metric]:.2f} is more than {points:g} points below "
                f"{present.metrics[metric]:.2f} of {present} in production{other}. Nothing changed"
            )
    restored(layout, new)
    if present and (new.model, new.md5) == (present.model, present.md5):
        earlier = earlier[:-1]  # the same weights: the entry takes the new metrics
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
    """The folder of a version, got from DVC's cache or its remote if it is missing or damaged.

    Raises:
        StorageError: DVC cannot give the weights.
    """
    folder = version.folder(layout)
    if _is_whole(folder):
        return folder
    with locked(lock_path(folder), folder):
        if _is_whole(folder):  # another process got the weights meanwhile
            return folder
        package_folder("dvc", extra("pipeline"), "name the folder of a model")
        from dvc.api import DVCFileSystem

        with replacing(folder) as partial:
            try:
                system = DVCFileSystem(rev=version.commit)
                system.get(f"models/{version.model}", str(partial), recursive=True)
                open_sealed(partial, "DVC's copy is damaged").check_all()
            except Exception as error:  # DVC and its storage have errors of many libraries
                raise StorageError(
                    f"{version}: DVC cannot give the weights: {first_line(error)}. Run 'dvc fetch "
                    "--all-commits', or promote another version"
                ) from None
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether the files of a version are those of their seal; each file is read once a process."""
    try:
        open_sealed(folder, "").check_all()
    except ManyMatchError:
        return False
    return True


def _write(layout: Layout, known: dict[str, list[Version]]) -> None:
    write_json(resolved(layout.production), _Promoted(promoted=known).model_dump(mode="json"))
