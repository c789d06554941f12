"""docs/published.md has a row for each preset that repeats a row of a paper, with its numbers."""

import re

from manymatch.config.preset import read_preset
from manymatch.reporting.published import published_results

HAND_SCALE = ("scenes", "scenes_large", "flickr8k")
MEASURES = ("i2t.r1", "t2i.r1", "rsum")


def printed(paper, number, dataset):
    """What the rows of a table of a paper say: R@1 of both directions and rsum."""
    for one in published_results():
        if (one.paper, one.section, one.dataset) == (paper, f"table {number}", dataset):
            ends = {key.removeprefix("coco_"): f"{value:g}" for key, value in one.values.items()}
            found = [[v for k, v in ends.items() if k.endswith(name)] for name in MEASURES]
            yield [(values or [""])[0] for values in found]


def test_the_page_has_every_preset_that_repeats_a_row_of_a_paper(root):
    page = (root / "docs" / "published.md").read_text("utf-8")
    rows = re.findall(r"^\| \[.*\]\(\.\./presets/(\S+)\) \| (.*) \|$", page, re.MULTILINE)
    rows = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    expected = set()
    for path in (root / "presets").glob("*/*.yaml"):
        name, dataset = f"{path.parent.name}/{path.name}", path.parent.name
        if dataset in HAND_SCALE or read_preset(path).setting != "reproduced":
            continue
        expected.add(name)
        head = re.sub(r"\n# ?", " ", path.read_text("utf-8").split("\n#\n")[0])
        paper, number = re.search(r"(\w+), tables? (\d+)(?: and \d+)?\)", head).groups()
        place, *numbers, _ = rows[name]
        assert place == f"{paper}, table {number}", name
        assert numbers in list(printed(paper, number, dataset)), name
    assert rows.keys() == expected
