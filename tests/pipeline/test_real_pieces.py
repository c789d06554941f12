"""DVC's stages on the pieces of the papers' datasets at hand: every protocol that applies."""

import json
import tarfile
from pathlib import Path

import pytest
from command_line import printed

from pipelines.graph import read_graph

pytestmark = pytest.mark.slow
METHOD = "vsepp_trial"


@pytest.fixture
def results(real_data, new_workspace, monkeypatch):
    """Run the stages of a dataset on its pieces, in this process: the metrics, and what was
    printed."""

    def run(dataset, settings):
        workspace = new_workspace()
        workspace.edit("params.yaml", {"datasets": [dataset], "presets": [METHOD]})
        # The accuracy of parsed graphs has tests of its own; the method reads no graph.
        workspace.edit("params.yaml", {"scene_graphs.model": "none"})
        changes = {"only_present": True, **settings}
        workspace.edit("params.yaml", {f"sources.{dataset}.{k}": v for k, v in changes.items()})
        monkeypatch.chdir(workspace.folder)
        stages, output = read_graph(workspace.folder).stages, ""
        for stage in stages:
            output += printed(*stage.command.split()[1:])
            assert all(out.exists() for out in stage.outs), stage.name
        assert len(stages) == 9
        board = (workspace.folder / "reports" / "leaderboard.md").read_text()
        assert f"| {METHOD} |" in board and "small-scale" in board
        metrics = workspace.folder / "reports" / "results" / dataset / f"{METHOD}.json"
        return json.loads(metrics.read_text()), output

    return run


def some_pictures(whole, part, every):
    """Write a part of the pictures of an archive, with their other files, to another archive."""
    with tarfile.open(whole) as opened, tarfile.open(part, "w") as written:
        files = {Path(member.name): member for member in opened if member.isfile()}
        stems = sorted({path.stem for path in files})[::every]
        for path, member in files.items():
            if path.stem in stems:
                written.addfile(member, opened.extractfile(member))
    return str(part)


def test_coco(real_data, results, tmp_path):
    """80 images; their objects are made up, since no annotations of instances are at hand."""
    pieces = real_data / "coco"
    published = json.loads((pieces / "captions_val2017.json").read_text())
    (tmp_path / "instances.json").write_text(json.dumps(made_instances(published["images"])))
    settings = {
        "images": some_pictures(pieces / "val2017_mini159.tar", tmp_path / "pieces.tar", 2),
        "captions": str(pieces / "captions_val2017.json"),
        "caption_ids": str(pieces / "ids"),
        "instances": str(tmp_path / "instances.json"),
    }
    metrics, output = results("coco", settings)
    assert 0 < metrics["rsum"] < 600
    assert 0 < metrics["pmrp"]["all"]["i2t"] < 100
    for name in ("coco_1k", "eccv_caption", "cxc"):
        assert name not in metrics and f"coco: left out {name}: " in output


def test_cub(real_data, results, tmp_path):
    """A part of the images of six of the ten classes at hand; training sees three classes."""
    splits = real_data / "cub" / "splits"
    pieces = some_pictures(real_data / "cub" / "cub_mini10.tar", tmp_path / "pieces.tar", 4)
    listed = [(splits / f"{name}classes.txt").read_text().split() for name in ("trainval", "test")]
    names = sorted(name for part in listed for name in part)
    (tmp_path / "train.txt").write_text("\n".join(names[:3] + names[10:]))
    (tmp_path / "test.txt").write_text("\n".join(names[3:6]))
    settings = {
        "images": pieces,
        "captions": pieces,
        "train_classes": str(tmp_path / "train.txt"),
        "test_classes": str(tmp_path / "test.txt"),
        "seen_test": str(splits / "seen_test_images.txt"),
    }
    metrics, _ = results("cub", settings)
    for setting in ("all_classes", "zero_shot"):
        for way in ("i2t", "t2i"):
            entry = metrics["classes"][setting][way]
            assert 100 / 6 < entry["r_precision"] < 100  # half of chance
            assert 0 < entry["r1"] <= 100


def made_instances(images):
    """COCO's form: every image has objects of two categories."""
    pairs = [(image["id"], category) for image in images for category in (1, 2 + image["id"] % 5)]
    annotations = [
        {"id": number, "image_id": image, "category_id": category}
        for number, (image, category) in enumerate(pairs)
    ]
    categories = [{"id": number, "name": f"object {number}"} for number in range(1, 7)]
    return {"images": images, "annotations": annotations, "categories": categories}
