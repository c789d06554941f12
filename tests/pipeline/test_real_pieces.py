"""DVC's stages on a piece of COCO: every protocol that applies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import printed
from workspace import Workspace

from pipelines.graph import read_graph

METHOD = "vsepp_trial"


@pytest.mark.slow
def test_coco(
    real_data: Path,
    new_workspace: Callable[[], Workspace],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """159 images; their objects are made up, since no annotations of instances are at hand."""
    pieces = real_data / "coco"
    published = json.loads((pieces / "captions_val2017.json").read_text())
    (tmp_path / "instances.json").write_text(json.dumps(made_instances(published["images"])))
    sources = {
        "only_present": True,
        "images": str(pieces / "val2017_mini159.tar"),
        "captions": str(pieces / "captions_val2017.json"),
        "caption_ids": str(pieces / "ids"),
        "instances": str(tmp_path / "instances.json"),
    }
    workspace = new_workspace()
    workspace.edit("params.yaml", {"datasets": ["coco"], "presets": [METHOD]})
    workspace.edit("params.yaml", {f"sources.coco.{key}": value for key, value in sources.items()})
    monkeypatch.chdir(workspace.folder)
    stages, output = read_graph(workspace.folder).stages, ""
    for stage in stages:
        output += printed(*stage.command.split()[1:])
        assert all(out.exists() for out in stage.outs), stage.name
    assert len(stages) == 9
    board = (workspace.folder / "reports" / "leaderboard.md").read_text()
    assert f"| {METHOD} |" in board and "small-scale" in board
    result = workspace.folder / "reports" / "results" / "coco" / f"{METHOD}.json"
    metrics = json.loads(result.read_text())
    assert 0 < metrics["rsum"] < 600
    assert 0 < metrics["pmrp"]["all"]["i2t"] < 100
    for name in ("coco_1k", "eccv_caption", "cxc"):
        assert name not in metrics and f"coco: left out {name}: " in output


def made_instances(images: list[dict[str, Any]]) -> dict[str, Any]:
    """COCO's form: every image has objects of two categories."""
    pairs = [(image["id"], category) for image in images for category in (1, 2 + image["id"] % 5)]
    annotations = [
        {"id": number, "image_id": image, "category_id": category}
        for number, (image, category) in enumerate(pairs)
    ]
    categories = [{"id": number, "name": f"object {number}"} for number in range(1, 7)]
    return {"images": images, "annotations": annotations, "categories": categories}
