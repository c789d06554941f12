"""The stage `code`: one file for each stage and name, with the hashes of the code that runs there.

DVC runs a stage again when the stage's file changes, so no other stage depends on source files.
"""

from contextlib import suppress

import typer

from manymatch import methods
from manymatch.cli import project
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.config.params import Extraction, Indexed, Params
from manymatch.evaluation.protocols import protocol_modules
from manymatch.util import files
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say

commands = typer.Typer()

_RECORDED = "manymatch.config.params:Evaluation", "manymatch:__version__"
"""What an evaluation depends on besides its code; its result names the package's version."""


@commands.command()
@writes(LAYOUT.code)
def code() -> None:
    """Write the hashes of the code that each stage can reach: data/code."""
    from manymatch.util.code_hash import installed

    stages = entries_by_stage(project.params())
    with files.replacing(LAYOUT.code) as folder:
        for stage, entries in stages.items():
            files.write_text(folder / f"{stage}.txt", installed().listing(*entries))
    say(f"{LAYOUT.code}: the code of {len(stages)} stages")


def entries_by_stage(params: Params) -> dict[str, list[str]]:
    """The entries of `util.code_hash` for every stage that `params` names, by the stage's file in
    `data/code`, without `.txt`: "train/scenes/cora".

    An entry `manymatch.config.params:NAME` stands for the defaults of the stage's settings.

    Raises:
        ConfigError: a data set, preset, method, backbone or format does not exist.
    """
    from manymatch import datasets, features
    from manymatch.features import importers
    from manymatch.reporting.page import section_modules

    evaluation = [*protocol_modules(), *_RECORDED]
    stages = {
        "scene_graphs": ["manymatch.scene_graphs.parse", "manymatch.config.params:SceneGraphs"],
        "shards": ["manymatch.shards.write", "manymatch.config.params:Shards"],
        "report": ["manymatch.reporting.report", *section_modules()],
    }
    trained = [(dataset, preset) for dataset in params.datasets for preset in params.presets]
    trained += [(start.dataset, start.preset) for start in params.warm_starts.values()]
    for dataset, preset in trained:
        method = _method(dataset, preset)
        stages[f"train/{dataset}/{preset}"] = ["manymatch.training.train", method]
        entries = ["manymatch.evaluation.evaluate", *evaluation, method]
        stages[f"evaluate/{dataset}/{preset}"] = entries
    for dataset in params.datasets:
        own = datasets.entry_point(datasets.kind(dataset, params.sources.get(dataset, {})))
        stages[f"download/{dataset}"] = ["manymatch.datasets.download", own]
        entries = ["manymatch.datasets.captions", own, "manymatch.config.params:Captions"]
        stages[f"captions/{dataset}"] = entries
        for name in params.features:
            settings = params.extraction_of(name)
            if published := settings.published.get(dataset):
                room = "manymatch.features.importers.importing"
                entries = [room, importers.entry_point(published.format)]
            else:
                backbones = features.entry_points(name, settings)
                entries = ["manymatch.features.extract", *backbones]
            entries = [*entries, "manymatch.config.params:Extraction"]
            stages[f"features/{dataset}/{name}"] = entries
        for ensemble in params.ensembles:
            methods = [_method(dataset, member) for member in ensemble.split("+")]
            entries = ["manymatch.evaluation.ensemble", *evaluation, *methods]
            stages[f"ensemble/{dataset}/{ensemble}"] = entries
    for stage, models, module in (
        ("probe", params.probes, "manymatch.experiments.probes.all_probes"),
        ("clusters", params.clusters, "manymatch.experiments.swamp_classes"),
    ):
        for model in models.values():
            entries = [module, *protocol_modules(), _method(model.dataset, model.preset)]
            stages[f"{stage}/{model.dataset}/{model.preset}"] = entries
    for name, dataset in params.experiments.items():
        presets = sorted((LAYOUT.presets / dataset).glob("*.yaml"))
        stages[f"experiment/{name}"] = [
            "manymatch.experiments.engine",
            "manymatch.experiments.grid",
            "manymatch.experiments.presets",
            *protocol_modules(),
            *dict.fromkeys(_method(dataset, preset.stem) for preset in presets),
        ]
    for name, index in params.indexes.items():
        stages[f"index/{name}"] = _index_stage(params, index)
    return stages


def _index_stage(params: Params, index: Indexed) -> list[str]:
    from manymatch import features

    dataset, _, name = index.model.partition("/")
    backbone = project.preset(dataset, name).features
    modules = ["manymatch.search.index.build", "manymatch.search.index.sources"]
    modules.append(_method(dataset, name))
    with suppress(ConfigError):  # nothing here extracts published features
        modules += features.entry_points(backbone, params.extraction.get(backbone, Extraction()))
    return modules


def _method(dataset: str, preset: str) -> str:
    return methods.entry_point(project.preset(dataset, preset).method)
