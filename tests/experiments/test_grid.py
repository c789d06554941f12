"""What varies: files and options, their points, and the presets that these become."""

import pytest
import yaml
from plans import plan_of

from manymatch.config.layout import Layout
from manymatch.config.names import preset_path
from manymatch.config.preset import read_preset
from manymatch.experiments.engine import key_of
from manymatch.experiments.grid import Options, experiment_of_file, experiment_of_options, points
from manymatch.experiments.preset_runs import portable_inputs
from manymatch.experiments.presets import preset_of
from manymatch.util.errors import ConfigError, DataError


def test_labels_are_short_and_the_last_key_changes_fastest(checkout):
    objectives = ("triplet", "info_nce")
    for over, labels in (
        (
            {"training.epochs": [1, 2], "objective": [*objectives]},
            [f"epochs={n}, objective={name}" for n in (1, 2) for name in objectives],
        ),
        ({"image.dropout": [0.5], "x": [[1, "a"]]}, ['dropout=0.5, x=[1, "a"]']),
        ({"preset": ["vsepp", "cora"]}, ["vsepp", "cora"]),
    ):
        plan = checkout.plan(preset=None if "preset" in over else "vsepp", over=over)
        assert [point.label for point in points(plan)] == labels


def test_a_key_is_of_the_model_unless_the_preset_has_it_and_changes_no_other_point(checkout):
    group = {"training.optimizer": {"lr": 0.5}}
    changes = {"slow": {"training.optimizer.lr": 0.1}, "small": {"size": 4}}
    plan = checkout.plan(set=group, points=changes)
    for _ in range(2):
        slow, small = (preset_of(checkout.layout, plan, point, seed=3) for point in points(plan))
        assert (slow.training.optimizer.lr, slow.model["size"], slow.seed) == (0.1, 8, 3)
        assert (small.training.optimizer.lr, small.model["size"]) == (0.5, 4)
        assert small.model["word_size"] == 4


def test_options_are_yaml_and_the_same_as_a_file(checkout, tmp_path):
    value = {
        "dataset": "tiny",
        "preset": "vsepp",
        "set": {"training.epochs": 1},
        "over": {"margin": [0.1, 1], "text_pooling": ["mean", "null"], "x": [None, True, [1, 2]]},
        "seeds": [0, 2],
    }
    path = tmp_path / "what.yaml"
    path.write_text(yaml.safe_dump(value))
    over = ["margin=0.1,1", "text_pooling=mean,'null'", "x=null,true,[1, 2]"]
    options = Options(dataset="tiny", seeds="0, 2", settings={"training.epochs": 1})
    given = experiment_of_options(["vsepp"], over, checkout.layout, options)
    assert given.plan == plan_of(path)
    assert given.name == "vsepp-margin-text_pooling-x"
    checkout.layout.experiment("vsepp-margin").parent.mkdir()
    checkout.layout.experiment("vsepp-margin").touch()
    names = [
        experiment_of_options(presets, over[:count], checkout.layout, options).name
        for presets, count in ((["vsepp", "cora"], 0), (["vsepp"], 1))
    ]
    assert names == ["vsepp-cora", "vsepp-margin-options"]
    assert experiment_of_file(path, checkout.layout).name == "what"
    changed = plan_of(path, dataset="scenes", seeds="4", settings={"training.epochs": 3})
    assert (changed.dataset, changed.seeds) == ("scenes", [4])
    assert changed.set["training.epochs"] == 3


BY_DATASET = {
    "dataset": "tiny",
    "preset": {"tiny": "vsepp", "big": "vsepp_big"},
    "points": {
        "wide": {"size": 16},
        "other": {"preset": {"tiny": "cora", "huge": "cora_huge"}},
        "same": {"preset": "pvse", "size": 4},
    },
}


def test_a_file_has_presets_by_data_set(tmp_path):
    path = tmp_path / "experiments" / "what.yaml"
    for folder in (path.parent, *(tmp_path / "presets" / name for name in ("tiny", "big", "huge"))):
        folder.mkdir(parents=True)
    path.write_text(yaml.safe_dump(BY_DATASET, sort_keys=False))
    tiny, big = plan_of(path), plan_of(path, dataset="big")
    assert (tiny.preset, big.preset) == ("vsepp", "vsepp_big")
    assert tiny.points["other"] == {"preset": "cora"} and list(big.points) == ["wide", "same"]
    assert plan_of(path, dataset="mine", settings={"preset": "own"}).set == {"preset": "own"}
    points_alone = {"preset": None, "points": {"a": {"preset": {"tiny": "b"}}}}
    for change, known in (({}, "tiny, big"), (points_alone, "tiny")):
        path.write_text(yaml.safe_dump({**BY_DATASET, **change}, sort_keys=False))
        with pytest.raises(ConfigError) as error:
            plan_of(path, dataset="mine")
        assert f"{path}: no preset for data set 'mine'" in str(error.value)
        assert f"({known})" in str(error.value)


def test_points_of_a_paper_keep_the_mark_of_their_preset(checkout):
    preset = checkout.layout.presets / "tiny" / "vsepp.yaml"
    preset.write_text(preset.read_text() + "setting: reproduced\n")
    value = {"dataset": "tiny", "preset": "vsepp", "over": {"size": [4, 16]}}
    ours, elsewhere = checkout.layout.experiment("what"), checkout.layout.root / "what.yaml"
    for path in (ours, elsewhere):
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({**value, "published": {"tiny": "VSE++, table 1"}}))

    def marks(path, **settings):
        experiment = experiment_of_file(path, checkout.layout, Options(settings=settings))
        return {experiment.settings(point, 1).setting for point in points(experiment.plan)}

    assert marks(ours) == {"reproduced"}
    assert marks(ours, margin=0.3) == marks(elsewhere) == {"small-scale"}
    (checkout.layout.presets / "big").mkdir()
    ours.write_text(yaml.safe_dump({**value, "published": {"big": "VSE++, table 1"}}))
    assert marks(ours) == {"small-scale"}


SYNTHETIC = {"preset": None, "experiment": "synthetic", "points": {"a": {}, "b": {"weight": 0.0}}}
POINTS = {"points": {"a": {}, "b": {}}}
GRID = {"over": {"size": [1]}}
PREFIXED = {"points": {"a": {"size": 1}, "b": {"model.size": 2}}, "set": {"model.size": 3}}
FILES = [
    ({}, {}, "either 'over'"),
    ({**GRID, "points": {"a": {}}}, {}, "either 'over'"),
    ({"over": {"seed": [1]}}, {}, "'seeds'"),
    ({**GRID, "seeds": [1, 1]}, {}, "a seed twice"),
    ({"over": {"size": [1, 1]}}, {}, "a value twice"),
    ({"over": {f"x{n}": [1, 2, 3] for n in range(99)}}, {}, "more than 10,000 runs"),
    ({**GRID, "seeds": list(range(10_001))}, {}, "more than 10,000 runs"),
    ({"preset": ["a"], **GRID}, {}, "preset: Input should be a valid string"),
    ({**POINTS, "claims": {"c": {"better": ["a", "b"], "other": "b"}}}, {}, "'b' is on both sides"),
    ({"points": {"": {}}}, {}, "points"),
    ({"ovr": {"size": [1]}}, {}, "did you mean 'over'?"),
    ({**POINTS, "published": {"cob": "table 1"}}, {}, "published: no data set 'cob'; did you mean"),
    ({"preset": {"scene": "vsepp"}, **GRID}, {}, "preset: no data set 'scene'; did you mean 'sce"),
    ({"points": {"a": {"preset": {"cob": "b"}}}}, {}, "preset: no data set 'cob'; did you mean"),
    ({"over": {"size": [1, 2]}, "set": {"size": 3}}, {}, "'size' is set"),
    (PREFIXED, {}, "'model.size' is set"),
    ({**SYNTHETIC, "baseline": "aa"}, {}, "no point is called 'aa'; did you mean 'a'"),
    ({**SYNTHETIC, "published": {"a": {"pairs": 1.0}}}, {}, "published.a"),
    (SYNTHETIC, {"dataset": "coco"}, "--dataset: "),
    (SYNTHETIC, {"device": "cpu"}, "--device: "),
    (SYNTHETIC, {"keep": True}, "--keep: "),
]


@pytest.mark.parametrize(("value", "options", "words"), FILES)
def test_a_faulty_file_or_option_is_one_line(tmp_path, value, options, words):
    path = tmp_path / "what.yaml"
    stated = {"preset": "vsepp", **value}
    path.write_text(yaml.safe_dump({k: v for k, v in stated.items() if v is not None}))
    refuses(lambda: plan_of(path, **options), words, *([] if options else [str(path)]))
    refuses(lambda: plan_of(path.with_name("wat.yaml")), "did you mean 'what.yaml'")


def refuses(work, *words):
    with pytest.raises(ConfigError) as error:
        work()
    message = str(error.value)
    assert "\n" not in message and all(word in message for word in words), message


OPTIONS = [
    ([], "0", "--over KEY=V1,V2"),
    (["size"], "0", "--over size: expected KEY=VALUE,VALUE"),
    (["size=1,[2"], "0", "--over size=1,[2: not a YAML value"),
    (["size=1", "size=2"], "0", "a key is given twice"),
    (["size=1"], "0,a", "seeds.1"),
    (["size=2020-01-01"], "0", "'over': a value is neither a number, text"),
]


@pytest.mark.parametrize(("over", "seeds", "words"), OPTIONS)
def test_faulty_options_are_one_line(over, seeds, words):
    refuses(lambda: experiment_of_options(["vsepp"], over, Layout(), Options(seeds=seeds)), words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sise": 4}, "unknown key 'sise' of method 'vsepp'; did you mean 'size'?"),
        ({"training.epoch": 4}, "did you mean 'epochs'?"),
        ({"size.width": 4}, "'size' is a value, not a group"),
        ({"preset": "vsep"}, "did you mean 'vsepp'?"),
        ({"method": ["vsepp"]}, "method: Input should be a valid string"),
        ({"size": 4, "model.size": 16}, "'model.size' is given twice"),
        ({"training.devices": 2}, "one device"),
        ({"augmentation.object_drop": 0.1}, "method 'vsepp' reads no scene graphs"),
        ({"training.schedule.factor": 2}, "schedule.factor: the schedule cosine without restarts"),
    ],
)
def test_a_faulty_setting_gets_the_nearest(checkout, settings, words):
    plan = checkout.plan(points={"one": settings})
    refuses(lambda: preset_of(checkout.layout, plan, points(plan)[0], seed=0), words)


def test_scene_graphs_count_where_a_method_reads_them(checkout):
    layout = checkout.layout
    presets = [read_preset(preset_path(layout.presets, "tiny", name)) for name in ("vsepp", "cora")]

    def hashes():
        return [key_of(**portable_inputs(layout, "tiny", preset, {})) for preset in presets]

    before = hashes()
    graphs = layout.scene_graphs("tiny")
    graphs.write_bytes(graphs.read_bytes() + b"\n")
    assert [one == other for one, other in zip(before, hashes(), strict=True)] == [True, False]
    graphs.unlink()
    with pytest.raises(DataError, match="Run the stage 'scene-graphs' first"):
        hashes()
