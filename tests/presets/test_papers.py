"""The published presets against one table of what the papers print: `papers.csv`.

A row says: in `paper`, at `place`, the setting `setting` of all runs that match `preset` has the
value `value`. A place is a section, a table, or the released code of the paper or of the paper that
it names for its settings.

- A run is a published preset (`coco/dive_butd_bigru`) or a point of one of SwAMP's other
  experiments (`synthetic/swamp/contrastive`, `sketches/sketchy/SwAMP`). `preset` may have wildcards
  and alternatives between `|`; the small presets of other data sets never match.
- A row of a grid names an experiment (`presets/dive-alpha`, `synthetic/appendix`). Its value lists
  all values of the paper's table or figure. The points must have them, and may have more.
- `setting` is a dotted key of the whole preset, the method's defaults filled in.
  `training.parameter_groups[image.sets.].lr_scale` is that of the parameters whose names begin with
  `image.sets.`: of the first group that they match, or the default if they match none.
- `value` is YAML. The value is the paper's, never read off the preset.
- `per` is `captions` where the paper counts captions and a preset counts images. A batch of 128
  captions is 128 images with one caption each. A paper's epoch shows every caption once; our epoch
  shows every image once, with `captions_per_image` of its captions. With one of five captions, the
  paper's 50 epochs are 250 of ours. The paper clips the gradient of a sum over captions. Our loss
  is their mean, so that the limit of its norm is the paper's over the captions of a batch.
"""

import csv
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from manymatch.config.layout import Layout
from manymatch.config.preset import ParameterGroup, read_preset
from manymatch.experiments.grid import experiment_of_file, points
from manymatch.methods import check_model

ROOT = Path(__file__).parents[2]
PAPERS = (
    *("dive", "swamp", "msrm", "maxmatch", "cora"),
    *("vsepp", "vse_infinity", "pvse", "pcme", "pcmepp"),
)
DATASETS = {"flickr30k", "coco", "cub", "youcook2", "msrvtt", "lsmdc"}
CAPTIONS_OF_AN_IMAGE = {"flickr30k": 5, "coco": 5, "cub": 10}
GRIDS = ("presets/", "synthetic/appendix")
"""Beginnings of the names of experiments whose rows list what their points vary."""
BATCH, CLIP = "training.images_per_batch", "training.clip_norm"
GROUP = re.compile(r"training\.parameter_groups\[(.+)\]\.(\w+)")


def published_presets():
    """The whole presets of the presets on the papers' data sets but for trials, by DATASET/NAME."""
    presets = {}
    for path in sorted((ROOT / "presets").glob("*/*.yaml")):
        if path.parent.name in DATASETS and not path.stem.endswith("_trial"):
            preset = read_preset(path)
            model = check_model(preset.method, preset.model).model_dump()
            presets[f"{path.parent.name}/{path.stem}"] = preset.model_dump() | {"model": model}
    return presets


def experiments():
    """All experiments by KIND/NAME."""
    layout = Layout(ROOT)
    files = sorted((ROOT / "experiments").glob("*.yaml"))
    listed = [experiment_of_file(path, layout) for path in files]
    return {f"{item.kind}/{item.name}": item for item in listed}


def experiment_points():
    """The settings of the points of SwAMP's other experiments, by KIND/NAME/POINT."""
    return {
        f"{name}/{point.label}": item.settings(point, seed=0).model_dump()
        for name, item in EXPERIMENTS.items()
        if name == "synthetic/swamp" or item.kind == "sketches"
        for point in points(item.plan)
    }


EXPERIMENTS = experiments()
RUNS = published_presets() | experiment_points()
with (Path(__file__).parent / "papers.csv").open(encoding="utf-8", newline="") as lines:
    ALL_ROWS = list(csv.DictReader(lines))
GRID_ROWS = [row for row in ALL_ROWS if row["preset"].startswith(GRIDS)]
ROWS = [row for row in ALL_ROWS if row not in GRID_ROWS]


def runs_of(row):
    patterns = row["preset"].split("|")
    return [name for name in RUNS if any(fnmatchcase(name, pattern) for pattern in patterns)]


def values_in(name, setting):
    """The values of `setting` at the points of an experiment. A point on presets that does not name
    the setting is left out."""
    experiment = EXPERIMENTS[name]
    listed = points(experiment.plan)
    if experiment.kind != "presets":
        return [experiment.settings(point, 0).model_dump()[setting] for point in listed]
    return [point.settings[setting] for point in listed if setting in point.settings]


def value_of(run, setting):
    """Raises `KeyError` if the run has no such setting."""
    if named := GROUP.fullmatch(setting):
        groups = run["training"]["parameter_groups"]
        defaults = ParameterGroup(match="").model_dump()
        group = next((g for g in groups if re.search(g["match"], named[1])), defaults)
        return group[named[2]]
    value = run
    for key in setting.split("."):
        value = value[key]
    return list(value) if isinstance(value, tuple) else value


def in_our_units(row, name):
    """The row's value as the preset of the run `name` counts."""
    value = yaml.safe_load(row["value"])
    if row["per"] != "captions":
        return value
    drawn = RUNS[name]["training"]["captions_per_image"]
    captions = CAPTIONS_OF_AN_IMAGE[name.split("/")[0]]
    if row["setting"] == BATCH:
        return value / (drawn or captions)
    if row["setting"] == CLIP:
        return value / (RUNS[name]["training"]["images_per_batch"] * (drawn or captions))
    epochs = captions / (drawn or captions)
    return [epochs * item for item in value] if isinstance(value, list) else epochs * value


@pytest.mark.parametrize("paper", PAPERS)
def test_the_settings_are_the_papers(paper):
    rows = [row for row in ROWS if row["paper"] == paper]
    assert rows and [row for row in rows if not runs_of(row)] == [], "rows without a preset"
    ours, stated = {}, {}
    for row in rows:
        for name in runs_of(row):
            key = f"{row['place']}: {name} {row['setting']}"
            ours[key] = value_of(RUNS[name], row["setting"])
            stated[key] = in_our_units(row, name)
    assert ours == stated


def test_the_grids_are_the_papers():
    for row in GRID_ROWS:
        ours = values_in(row["preset"], row["setting"])
        assert [value for value in yaml.safe_load(row["value"]) if value not in ours] == [], row


def test_rows_are_complete_and_every_published_run_has_one_value_of_a_setting():
    for row in ALL_ROWS:
        assert row["paper"] in PAPERS and row["place"] and row["value"], row
        assert row["per"] in {"", "captions"}, row
    stated = [(name, row["setting"]) for row in ROWS for name in runs_of(row)]
    assert RUNS.keys() == {name for name, _ in stated}
    assert len(stated) == len(set(stated))
