"""The command `init`: what it writes, what it refuses, and that the project fits afterwards."""

import difflib
import re
import shutil
from pathlib import Path

import pytest
import yaml
from command_line import configured, fails, run

from manymatch.config.preset import read_preset
from manymatch.datasets.base import parser_of
from manymatch.methods import check_model

TEN = {
    *("vsepp", "vse_infinity", "pvse", "pcme", "pcmepp"),
    *("msrm", "swamp", "dive", "maxmatch", "cora"),
}


@pytest.fixture
def project(birds, root, monkeypatch):
    birds.table(birds.root / "captions.csv")
    return configured(root, birds.root, monkeypatch)


INIT = "init birds --images photos --captions captions.csv"


def test_init_adds_the_source_and_presets_and_nothing_else(project, monkeypatch, capfd):
    before = Path("params.yaml").read_text()
    run(INIT, monkeypatch)
    said = capfd.readouterr().err
    assert re.search(r"60 pictures \(48 train, 6 validation, 6 test\)", said)
    assert (
        "about" in said
        and "dvc repro" in said
        and re.search(r"\d more presets are ready: .*dive", said)
    )
    assert "  dvc repro evaluate@birds-vsepp\n" in said
    assert "  manymatch index photos --model models/birds/vsepp --to data/indexes/birds\n" in said
    after = Path("params.yaml").read_text()
    changed = [
        line
        for line in difflib.ndiff(before.splitlines(), after.splitlines())
        if line.startswith(("+ ", "- "))
    ]
    assert changed[:2] == ["- datasets: [scenes]", "+ datasets: [scenes, birds]"]
    source = {"kind": "own", "images": "photos", "captions": "captions.csv", "format": "table"}
    assert changed[2:-1] == ["+   birds:", *(f"+     {key}: {source[key]}" for key in source)]
    assert changed[-1].startswith("+     content: ")
    presets = {path.stem: read_preset(path) for path in Path("presets/birds").iterdir()}
    assert {preset.method for preset in presets.values()} == TEN == set(presets)
    assert all(preset.training.epochs == 30 for preset in presets.values())
    assert presets["cora"].model["size"] == 128
    run("check", monkeypatch)


def test_features_of_a_backbone_come_with_its_text_model(project, monkeypatch):
    run(f"{INIT} --features siglip2-base", monkeypatch)
    params = yaml.safe_load(Path("params.yaml").read_text())
    model = "google/siglip2-base-patch16-224"
    assert params["extraction"]["siglip2-base"] == {"kind": "hf", "model": model}
    assert params["features"][-1] == "siglip2-base"
    for path in Path("presets/birds").iterdir():
        preset = read_preset(path)
        settings = check_model(preset.method, preset.model)
        assert preset.features == "siglip2-base"
        text = getattr(settings, "text", settings)
        assert preset.method == "vsepp" or (text.hf.model, text.hf.train) == (model, "lora")


def test_a_second_run_takes_new_settings_and_keeps_presets(project, monkeypatch, capfd):
    Path("presets/birds").mkdir()
    Path("presets/birds/cora.yaml").write_text("method: cora\nfeatures: lite0\n")
    contents = set()
    for options in ("", " --seed 1"):
        run(INIT + options, monkeypatch)
        source = yaml.safe_load(Path("params.yaml").read_text())["sources"]["birds"]
        contents.add(source["content"])
    before = Path("params.yaml").read_text()
    line = fails(f"{INIT} --features siglip2-base", monkeypatch, capfd)
    assert "'lite0'" in line and "'siglip2-base'" in line  # presets of other features
    assert Path("params.yaml").read_text() == before
    shutil.copy("photos/bird1.jpg", "photos/bird2.jpg")
    run(f"{INIT} --seed 1", monkeypatch)
    changed = yaml.safe_load(Path("params.yaml").read_text())["sources"]["birds"]
    assert source["seed"] == changed["seed"] == 1
    assert len(contents | {changed["content"]}) == 3
    assert Path("presets/birds/cora.yaml").read_text() == "method: cora\nfeatures: lite0\n"


def test_another_language_names_its_parser(project, monkeypatch, capfd):
    run(f"{INIT} --language th", monkeypatch)
    assert "spacy download" in capfd.readouterr().err
    for stage in ("download", "captions", "scene-graphs"):
        run(f"{stage} birds", monkeypatch)
    assert parser_of(Path("data/captions/birds.parquet")) == "none"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (INIT.replace("birds", "coco"), "built-in"),
        (INIT.replace("birds", "scenes_large"), "a data set of the kind 'scenes'"),
        (INIT.replace("birds", "../birds"), "not a name"),
        (INIT.replace("birds", "birds.v2"), "dot"),
        (f"{INIT} --language English", "language code"),
        (f"{INIT} --allow 1.5", "allow"),
        (f"{INIT} --format excel", "format"),
        (f"{INIT} --features siglip3-base", "siglip2-base"),
        (f"{INIT} --split train.txt --split val.txt", "train.txt: No such file"),
        (INIT.replace("photos", "pictures"), "pictures: no such"),
    ],
)
def test_a_faulty_command_is_one_line_and_changes_nothing(
    command, words, project, monkeypatch, capfd
):
    before = Path("params.yaml").read_text()
    assert words in fails(command, monkeypatch, capfd)
    assert Path("params.yaml").read_text() == before and not Path("presets/birds").exists()


def test_few_presets_to_adapt_are_enough_and_none_is_one_line(project, monkeypatch, capfd):
    templates = Path("presets/flickr8k")
    for path in templates.iterdir():
        if path.name != "msrm.yaml":
            path.unlink()
    run(INIT, monkeypatch)
    assert "evaluate@birds-msrm" in capfd.readouterr().err
    (templates / "msrm.yaml").unlink()
    assert "no presets to adapt" in fails(INIT.replace("birds", "owls", 1), monkeypatch, capfd)


def test_a_name_that_hides_a_stage_is_refused_before_anything_is_written(
    project, monkeypatch, capfd
):
    path = Path("params.yaml")
    names = "presets: [vsepp, birds-vsepp]\n"
    text = re.sub(r"presets: .*\n", names, path.read_text(), count=1)
    path.write_text(text)
    line = fails(INIT.replace("birds", "scenes-birds", 1), monkeypatch, capfd)
    assert "'scenes-birds-vsepp'" in line and path.read_text() == text
    assert not Path("presets/scenes-birds").exists()
