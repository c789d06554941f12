"""An edit of the source code changes the hash files of exactly those stages that can run it."""

import contextlib
import functools
import re
import shutil
from pathlib import Path

import pytest
import yaml

from manymatch.cli.code import entries_by_stage
from manymatch.config.names import Name
from manymatch.config.params import Indexed, Params, read_params
from manymatch.util.code_hash import Code

RUNS = {
    "datasets": ["scenes", "flickr30k"],
    "presets": ["vsepp", "cora", "dive"],
    "features": ["lite0", "butd"],
    "ensembles": ["vsepp+cora"],
    "probes": {"scenes-cora": {"dataset": "scenes", "preset": "cora"}},
    "clusters": {"scenes-cora": {"dataset": "scenes", "preset": "cora"}},
    "experiments": {"dive-alpha": "scenes"},
    "indexes": {"pictures": {"source": "data/raw/scenes/images", "model": "scenes/cora"}},
}
MODELS = {f"{dataset}/{name}" for dataset in RUNS["datasets"] for name in RUNS["presets"]}
TRAIN = {f"train/{model}" for model in MODELS}
EVALUATE = {f"evaluate/{model}" for model in MODELS}
ENSEMBLE = {f"ensemble/{dataset}/vsepp+cora" for dataset in RUNS["datasets"]}
INDEX = {"index/pictures"}
PROBED = {"probe/scenes/cora", "clusters/scenes/cora"}
LEARNING = TRAIN | EVALUATE | ENSEMBLE | PROBED | {"experiment/dive-alpha"}


def append(text):
    return lambda source: source + text


def replace(old, new):
    def change(source):
        assert old in source
        return source.replace(old, new, 1)

    return change


NEGATED = replace("return ", "return not ")
DIVE = {f"{kind}/{dataset}/dive" for dataset in RUNS["datasets"] for kind in ("train", "evaluate")}
EXPERIMENT = {"experiment/dive-alpha"}
RESULTS = EVALUATE | ENSEMBLE | EXPERIMENT
CAPTIONS = {"captions/scenes", "captions/flickr30k"}
SETS = "\nEPSILON = 1.0\n\n\ndef smooth_chamfer(images, texts, alpha): ...\n"
SOME = {
    "__init__.py": (replace('__version__ = "', '__version__ = "9'), EVALUATE | ENSEMBLE),
    "config/preset.py": (
        replace("lr: Positive = 5e-4", "lr: Positive = 6e-4"),
        LEARNING | INDEX | {"report"},
    ),
    "config/params.py": (
        replace("minimum_count: Count = 1", "minimum_count: Count = 2"),
        CAPTIONS | EXPERIMENT,
    ),
    "similarities/sets.py": (append(SETS), DIVE | EXPERIMENT),
    "reporting/templates/page.html": (append("<hr>"), {"report"}),
    "datasets/fetching/archives.py": (NEGATED, {"download/flickr30k", "captions/flickr30k"}),
    "scenes/drawing/figures.csv": (append("car\n"), {"download/scenes", "captions/scenes"}),
    "features/lite.py": (NEGATED, {"features/scenes/lite0", "features/flickr30k/lite0"} | INDEX),
    "features/importers/precomp.py": (NEGATED, {"features/flickr30k/butd"}),
    "scene_graphs/parser.py": (NEGATED, {"scene_graphs"} | INDEX),
    "shards/split_writer.py": (NEGATED, {"shards"}),
}
WITHOUT_EFFECT = {
    "training/train.py": append("\n# A remark.\n"),
    "methods/vsepp.py": replace('"""', '"""Well: '),
    "methods/shared/method.py": replace(
        "if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    import fractions\n"
    ),
    "methods/another.py": append("ANSWER = 42\n"),
    "datasets/__init__.py": replace("DATASETS = {\n", 'DATASETS = {\n    "another": "Another",\n'),
    "util/files.py": append("\n\ndef idle(): ...\n"),
}
"""A comment, a docstring, layout, an import for type checkers, new files and names that no stage
uses yet, and a function that no stage calls."""
OTHERS = {name: (change, set[str]()) for name, change in WITHOUT_EFFECT.items()} | {
    "config/params.py": (replace("depth: Count = 100", "depth: Count = 50"), RESULTS)
}


@pytest.fixture(scope="module")
def params(root):
    params = read_params(root / "params.yaml").model_dump() | RUNS
    params["extraction"]["butd"]["published"] = {"flickr30k": {"format": "scan", "path": "given"}}
    return Params.model_validate(params)


@pytest.fixture(scope="module")
def package(root, tmp_path_factory):
    copy = tmp_path_factory.mktemp("package") / "manymatch"
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(root / "src" / "manymatch", copy, ignore=ignored))


@pytest.fixture(scope="module")
def stages(root, params, tmp_path_factory):
    """The entries of every stage, with the same presets for both data sets."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "params.yaml").touch()
    for dataset in params.datasets:
        (folder / "presets" / dataset).mkdir(parents=True)
        for name in params.presets:
            shutil.copy(root / f"presets/scenes/{name}.yaml", folder / "presets" / dataset)
    with contextlib.chdir(folder):
        return entries_by_stage(params)


@pytest.fixture(scope="module")
def listings(package, stages):
    """The content of every stage's file, from the copy of the package with some files changed."""

    def make(changes):
        paths = {package / name: change for name, change in changes.items()}
        sources = {path: path.read_text() if path.exists() else None for path in paths}
        for path, change in paths.items():
            path.write_text(change(sources[path] or ""))
        try:
            code = Code(package)
            listing = functools.cache(lambda entries: code.listing(*entries))
            return {stage: listing(tuple(entries)) for stage, entries in stages.items()}
        finally:
            for path, source in sources.items():
                path.unlink() if source is None else path.write_text(source)

    return make


@pytest.fixture(scope="module")
def before(listings):
    return listings({})


@pytest.mark.parametrize("edits", [SOME, OTHERS], ids=["some", "others"])
def test_an_edit_changes_the_files_of_the_stages_that_run_it(listings, before, edits):
    """All edits at once: each one changes the line of its own file alone."""
    after = listings({name: change for name, (change, _) in edits.items()})
    changed = {
        (line.split()[0], stage)
        for stage in after
        for line in {*after[stage].splitlines()} ^ {*before[stage].splitlines()}
    }
    expected = {(line_of(name), stage) for name, (_, stages) in edits.items() for stage in stages}
    assert changed == expected
    assert len(after) == len(before) > 20


def line_of(file):
    """What a listing calls a file of the package: a module, or a data file."""
    if not file.endswith(".py"):
        return file
    module = file.removesuffix(".py").replace("/", ".").removesuffix("__init__").rstrip(".")
    return f"manymatch.{module}".rstrip(".")


def test_every_stage_depends_on_its_own_file_and_on_no_source(root, stages):
    known = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    warm = {"warm_train": "train", "warm_evaluate": "evaluate"}
    kinds = {stage.partition("/")[0] for stage in stages}
    assert {warm.get(name, name) for name in known} == {"code", *kinds}
    assert "src/manymatch" in known.pop("code")["deps"]
    for name, stage in known.items():
        deps = stage.get("do", stage)["deps"]
        assert not [dep for dep in deps if dep.startswith("src")]
        (own,) = [dep for dep in deps if dep.startswith("data/code/")]
        assert own.startswith(f"data/code/{warm.get(name, name)}")


def test_a_command_of_dvc_takes_names_alone(root):
    """DVC puts values into commands without quotes, and a shell runs the commands. Only names have
    a pattern without special characters (`config.names`)."""
    values = set()
    for name, stage in yaml.safe_load((root / "dvc.yaml").read_text())["stages"].items():
        inner = stage.get("do", stage)
        found = set(re.findall(r"\$\{(.*?)\}", inner["cmd"]))
        assert "wdir" not in inner and ("item" not in found or name == "experiment")
        values |= found
    names = {"item.dataset", "item.preset", "item.features", "item.ensemble"}
    assert values == names | {"key", "item"}
    kinds = {Params.model_fields[key].annotation for key in ("experiments", "indexes")}
    assert kinds == {dict[Name, Name], dict[Name, Indexed]}
