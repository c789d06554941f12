"""docs/published.md: a row for each preset that repeats a row of a paper. The heads of the presets
name the rows. `REWRITE=1` writes the table again."""

import os
import re

import yaml

from manymatch.config.preset import read_preset
from manymatch.reporting.published import published_results
from manymatch.reporting.sections.published import PAPERS_NAME

FEATURES = {"butd": "butd", "resnet152": "resnet152", "resnext101": "resnext101-wsl"}
FILES = {
    "glove.840B.300d.txt": "glove.840B.300d.txt (5,650 MB; 2,180 MB as a zip)",
    "GoogleNews-vectors-negative300.bin": "GoogleNews-vectors-negative300.bin (3,640 MB)",
    "ig_resnext101_32x8-c38310e5.pth": "ig_resnext101_32x8-c38310e5.pth (360 MB)",
    "resnet152-394f9c45.pth": "resnet152-394f9c45.pth (242 MB)",
    "resnet50-0676ba61.pth": "resnet50-0676ba61.pth (102 MB)",
    "howto100m/released": "howto100m_pt_model.pth",
    "bert-base-uncased": "bert-base-uncased (440 MB, downloaded)",
}
"""What presets name -> what a reader needs."""
MEASURES = ("i2t.r1", "t2i.r1", "rsum")


def printed(path):
    """The place that the head of a preset names, and the rows of the method there."""
    head = re.sub(r"\n# ?", " ", path.read_text("utf-8").split("\n#\n")[0])
    named = re.search(r"(\w+), tables? (\d+)(?: and \d+)?\)", head)
    assert named, f"{path}: the head names no table"
    paper, number = named.groups()
    dataset, (stem, *parts) = path.parent.name, path.stem.split("_")
    name = "Contrastive" if stem == "contrastive" else PAPERS_NAME[read_preset(path).method]
    start = "pretrained" if "howto100m" in parts else "no pretraining"
    features = next((FEATURES[part] for part in parts if part in FEATURES), "")
    text = next((part for part in parts if part in ("bigru", "bert")), "bigru" if parts else "")
    rows = [
        one
        for one in published_results()
        if (one.paper, one.section, one.dataset) == (paper, f"table {number}", dataset)
        and one.method.split()[0] == name
        and not one.marks
        and one.setting != "1k"
        and one.features in (features, "")
        and one.text_encoder in (text, "")
        and ("(" not in one.method or f"({start})" in one.method)
    ]
    return f"{paper}, table {number}", rows


def table(root):
    lines = [
        "| Preset | Printed in | R@1, image → text | R@1, text → image | rsum "
        "| Images or features, and files |",
        "|---|---|---:|---:|---:|---|",
    ]
    for path in sorted((root / "presets").glob("*/*.yaml")):
        if path.parent.name in ("scenes", "scenes_large", "flickr8k"):
            continue
        preset = read_preset(path)
        if preset.setting != "reproduced":
            continue
        place, rows = printed(path)
        assert len(rows) == 1, f"{path}: {place} has {len(rows)} rows of the method"
        values = {key.removeprefix("coco_"): value for key, value in rows[0].values.items()}
        numbers = [
            next((f"{value:g}" for key, value in values.items() if key.endswith(measure)), "")
            for measure in MEASURES
        ]
        text = yaml.safe_dump(preset.model_dump(mode="json", include={"model", "warm_start"}))
        files = [needed for name, needed in FILES.items() if name in text]
        given = "images" if preset.features.startswith("pixels") else f"`{preset.features}`"
        name = f"[{path.parent.name}/{path.stem}](../presets/{path.parent.name}/{path.name})"
        cells = [name, place, *numbers, "; ".join([given, *files])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_has_every_preset_that_repeats_a_row_of_a_paper(root):
    page = root / "docs" / "published.md"
    text = page.read_text("utf-8")
    start = text.index("| Preset |")
    if os.environ.get("REWRITE"):
        text = f"{text[:start]}{table(root)}\n"
        page.write_text(text, "utf-8")
    assert text[start:].rstrip("\n") == table(root)
