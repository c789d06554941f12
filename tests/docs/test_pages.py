"""The pages of the documentation against the code: what they name exists, their settings are
settings, the programs take their commands."""

import json
import re
import runpy
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer
import yaml
from hub_texts import FAMILIES, TOWERS
from small_methods import NAMES, UNTRAINED

from manymatch.cli.commands import app
from manymatch.config.layout import Layout
from manymatch.config.params import Extraction, read_params
from manymatch.config.preset import Preset
from manymatch.config.strict import validate
from manymatch.datasets import DATASETS, check_settings
from manymatch.experiments.grid import Options, experiment_of_file, experiment_of_options
from manymatch.features import BACKBONES
from manymatch.features.importers import entry_point
from manymatch.methods import check_model
from manymatch.training.run_context import TORCHRUN
from manymatch.util.parts import Part
from pipelines import flows, settings
from pipelines.deployments import deployments
from pipelines.gpus import WANTED
from pipelines.sharing import SHARE

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
COMMANDS = [
    (name, command)
    for name in ("index", "experiments", "explorer", "probes", "protocols", "search", "scaling")
    for command in re.findall(r"^(?:    )?manymatch (.+)$", PAGES[name], re.MULTILINE)
]
DEPLOYMENTS = {entry["name"]: entry for entry in deployments(ROOT)["deployments"]}
OF_SERVICE = re.findall(
    r"^    prefect (.+)$", PAGES["orchestration"] + PAGES["index"], re.MULTILINE
)


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("page", "text"), COMMANDS)
def test_the_command_line_takes_it(page, text):
    name, *words = shlex.split(text)
    group = typer.main.get_command(app)
    values = group.commands[name].make_context(name, words).params
    assert not values.get("part") or Part.read(values["part"])
    if name != "experiment":
        return
    subject, options = values["subject"], Options(seeds=values["seeds"])
    if subject.endswith(".yaml"):
        experiment_of_file(ROOT / subject, Layout(ROOT), options).check()
    else:
        options = replace(options, dataset=subject)
        of_options = experiment_of_options(values["presets"], values["over"], Layout(ROOT), options)
        of_options.check()


def test_the_file_on_the_page_is_an_experiment(tmp_path):
    text, _ = blocks("experiments", "yaml")
    path = tmp_path / "page.yaml"
    path.write_text(text, encoding="utf-8")
    for dataset in ("scenes", "flickr8k", "cub", "coco"):
        experiment_of_file(path, Layout(ROOT), Options(dataset=dataset)).check()


def test_settings_of_features_are_valid():
    texts = blocks("features", "yaml")
    assert len(texts) == 6
    for text in texts:
        for name, value in yaml.safe_load(text)["extraction"].items():
            extraction = validate(Extraction, value, "docs/features.md")
            assert (extraction.kind or name) in BACKBONES or extraction.published
            for published in extraction.published.values():
                entry_point(published.format)


def test_the_page_of_backbones_has_valid_settings_and_all_families():
    settings = [yaml.safe_load(text) for text in blocks("backbones", "yaml")]
    params = [one for one in settings if "extraction" in one]
    made = {name: value for one in params for name, value in one["extraction"].items()}
    kinds = [validate(Extraction, value, "docs/backbones.md").kind for value in made.values()]
    assert kinds == ["hf", "pixels"] and [*made] == [one["features"][0] for one in params]
    for preset in (one for one in settings if "method" in one):
        assert validate(Preset, preset, "docs/backbones.md").features in made
        check_model(preset["method"], preset["model"])
    listed = re.findall(r"^\| (`.*) \|", PAGES["backbones"].split("Tested with")[1], re.MULTILINE)
    named = {name for line in listed for name in re.findall(r"`([\w-]+)`", line)}
    assert named == FAMILIES.keys() | TOWERS.keys()


OF_DATASETS = [yaml.safe_load(text) for text in blocks("datasets", "yaml")]


def test_settings_of_every_data_set_are_valid_on_the_page_and_in_params():
    for ((name, stated),) in map(dict.items, OF_DATASETS):
        assert check_settings(name, stated).model_dump(exclude_unset=True).keys() == stated.keys()
    named = {name for stated in OF_DATASETS for name in stated}
    elsewhere = {"scenes", "flickr8k", "own"}  # in params.yaml, own-data.md
    assert named == DATASETS.keys() - elsewhere | {"scenes_large"}
    params = read_params(ROOT / "params.yaml")
    for name in named:
        assert f"`{name}`" in PAGES["datasets"]
        stated = params.source(name)
        shown = check_settings(name, stated).model_dump(mode="json")
        published = {key for key, value in shown.items() if "https://" in str(value)}
        assert shown.keys() - published == stated.keys(), "all but the published are shown"


@pytest.mark.parametrize("method", [*NAMES, *UNTRAINED])
def test_every_method_has_a_section(method):
    ((anchor, file),) = re.findall(
        rf"^\| \[`{method}`\]\(#([\w-]+)\).*\(\.\./(\S+)\)", PAGES["methods"], re.MULTILINE
    )
    titles = re.findall(r"^## (.*)$", PAGES["methods"], re.MULTILINE)
    slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
    assert anchor.removesuffix("-1") in slugs and (ROOT / file).name == f"{method}.py"


@pytest.mark.parametrize("words", OF_SERVICE)
def test_the_flow_takes_what_the_command_gives(words, monkeypatch):
    monkeypatch.chdir(ROOT)
    _, run, name, *options = shlex.split(words)
    assert run == "run"
    deployment = DEPLOYMENTS[name]
    given = dict(text.split("=", 1) for text in options if "=" in text)
    parameters = {**deployment.get("parameters", {}), **{k: _value(v) for k, v in given.items()}}
    flow = getattr(flows, deployment["entrypoint"].rpartition(".")[2])
    checked = flow.validate_parameters(parameters)
    overrides = checked.get("overrides", "")
    texts = overrides.split() if isinstance(overrides, str) else overrides
    assert len(settings.overridden(overrides, Path("presets/scenes/cora.yaml"))) == len(texts)


def _value(text):
    """As `prefect deployment run` reads it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_variables_and_files_of_scaling_are_known():
    page = PAGES["scaling"]
    assert set(re.findall(r"\bMANYMATCH_\w+", page)) == {SHARE, WANTED, TORCHRUN}
    for name in re.findall(r"\b(?:deploy|benchmarks)/[\w.]+\w", page):
        assert (ROOT / name).is_file()


def test_the_table_of_large_sets_is_what_the_script_prints(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr("sys.argv", ["large_sets.py"])
    runpy.run_path(str(ROOT / "benchmarks" / "large_sets.py"), run_name="__main__")
    assert f"\n\n{capsys.readouterr().out}\n" in PAGES["scaling"]
