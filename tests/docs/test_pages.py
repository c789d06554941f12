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
from dvc.cli import parse_args
from hub_texts import FAMILIES, TOWERS
from small_methods import NAMES, UNTRAINED

from manymatch.cli.commands import app
from manymatch.config.layout import Layout
from manymatch.config.params import Extraction, read_params
from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import validate
from manymatch.datasets import DATASETS, check_settings
from manymatch.datasets.fetching.sources import Source
from manymatch.evaluation.protocols.suite import protocols
from manymatch.experiments.grid import Options, experiment_of_file, experiment_of_options
from manymatch.experiments.probes.all_probes import PROBES
from manymatch.features import BACKBONES
from manymatch.features.importers import FORMATS, entry_point
from manymatch.methods import check_model
from manymatch.training.run_context import TORCHRUN
from manymatch.util.parts import Part
from pipelines import flows, settings
from pipelines.deployments import deployments
from pipelines.gpus import WANTED
from pipelines.serve import POOL
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
    r"^    (make|prefect) (.+)$", PAGES["orchestration"] + PAGES["index"], re.MULTILINE
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


def test_every_probe_protocol_format_and_deployment_is_described():
    for name in PROBES:
        assert PAGES["probes"].count(f"| `{name}` |") == 2
    for name in protocols():
        assert PAGES["protocols"].count(f"| `{name}` |") == 1
    assert re.findall(r"^\| `(\w+)` \|", PAGES["features"], re.MULTILINE) == list(FORMATS)
    table = PAGES["orchestration"].split("## Parameters")[0]
    for name in DEPLOYMENTS:
        assert f"`{name}`" in table, name


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


@pytest.mark.parametrize("name", ["coco", "flickr30k", "cub"])
def test_published_files_have_mirrors(name):
    values = dict(check_settings(name, {})).values()
    sources = [part for value in values if isinstance(value, tuple) for part in value]
    sources += [value for value in values if isinstance(value, Source)]
    assert sources and all(source.mirrors for source in sources)


PRESETS = sorted({path.resolve() for path in (ROOT / "presets").glob("*/*.yaml")})


def row(method):
    (row_text,) = re.findall(rf"^\| \[`{method}`\]\(#.*$", PAGES["methods"], re.MULTILINE)
    return row_text


def section_of(method):
    """The section to which the row links."""
    (anchor,) = re.findall(rf"^\| \[`{method}`\]\(#([\w-]+)\)", row(method))
    titled = [section.partition("\n") for section in PAGES["methods"].split("\n## ")[1:]]
    slugs = {}
    for title, _, section in titled:
        slug = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        slugs[f"{slug}-1" if slug in slugs else slug] = section  # "PCME" and "PCME++"
    return slugs[anchor]


@pytest.mark.parametrize("method", [*NAMES, *UNTRAINED])
def test_every_method_has_a_row_with_its_file_and_a_section(method):
    assert f"(../src/manymatch/methods/{method}.py)" in row(method)
    words, _, deviations = section_of(method).strip().partition("\n\n")
    assert 250 < len(words) < 800, "what it does, in about five lines"
    assert deviations.startswith("- ") or "](fidelity.md#" in deviations.partition("\n\n")[0]


def test_every_preset_has_a_head_and_is_linked_in_the_section_of_its_method():
    for path in PRESETS:
        name = f"{path.parent.name}/{path.name}"
        assert path.read_text().startswith("# "), name
        assert f"[{path.stem}](../presets/{name})" in section_of(read_preset(path).method)
    assert PAGES["methods"].count("](../presets/") == len(PRESETS)


def test_the_targets_are_those_of_the_makefile():
    targets = {words for program, words in OF_SERVICE if program == "make"}
    assert targets == {"repro", "serve", "setup", "stop"}
    for target in targets:
        assert f"\n{target}: " in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("words", [words for program, words in OF_SERVICE if program == "prefect"])
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


def starting(program):
    lines = "".join(blocks("scaling", "sh")).splitlines()
    return [line.removeprefix(f"{program} ") for line in lines if line.startswith(f"{program} ")]


@pytest.mark.parametrize("text", starting("dvc"))
def test_dvc_takes_it(text):
    assert parse_args(shlex.split(text)).func


def test_variables_deployments_and_files_are_known():
    page = PAGES["scaling"]
    assert set(re.findall(r"\bMANYMATCH_\w+", page)) == {SHARE, WANTED, TORCHRUN}
    assert set(re.findall(r"--pool (\w+)", page)) == {POOL}
    known = {
        f"{deployment['entrypoint'].rpartition('.')[2]}/{name}"
        for name, deployment in DEPLOYMENTS.items()
    }
    assert set(re.findall(r"deployment run (\S+)", page)) <= known
    for name in re.findall(r"\b(?:deploy|benchmarks)/[\w.]+\w", page):
        assert (ROOT / name).is_file()
    for name in re.findall(r"`((?:Dockerfile|\w+\.(?:json|yaml)))`", page):
        assert (ROOT / "deploy" / name).is_file() or (ROOT / name).is_file()


def test_the_table_of_large_sets_is_what_the_script_prints(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr("sys.argv", ["large_sets.py"])
    runpy.run_path(str(ROOT / "benchmarks" / "large_sets.py"), run_name="__main__")
    assert f"\n\n{capsys.readouterr().out}\n" in PAGES["scaling"]


def test_the_site_has_pages_that_exist_and_no_link_to_files_outside_of_it():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    doors = [page for door in nav[1:] for pages in door.values() for page in pages]
    assert len(nav) == 4 and len({*doors}) == len(doors) > 15
    assert {Path(page).stem for page in ["index.md", *doors]} <= PAGES.keys()
    hooks = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))
    text = hooks["on_page_markdown"](PAGES["experiments"])
    assert "](../" in PAGES["experiments"] and "](../" not in text
    assert "default-src 'self'" in hooks["on_post_page"]("<html><head></head></html>")
