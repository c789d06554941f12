"""Unknown keys, wrong values and missing files are one line that says where and what to do."""

import pytest

from manymatch.config.galleries import is_papers_test, is_whole
from manymatch.config.names import preset_path
from manymatch.config.params import Params, read_params
from manymatch.config.preset import read_preset
from manymatch.config.strict import Grouped, Strict, read_yaml, validate
from manymatch.methods import check_model
from manymatch.util.errors import ConfigError

PRESET = "method: vsepp\nfeatures: lite0\ntraining:\n  epochs: 3\n"
ALIASES = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
MERGED = ALIASES.replace("[", "{<<: [").replace("]", "]}")
"""Nine lines that stand for 9^9 values of `a0`."""


def preset_file(folder, text=PRESET):
    path = folder / "scenes" / "vsepp.yaml"
    path.parent.mkdir()
    path.write_text(text, errors="surrogateescape")
    return path


def one_line(error):
    text = str(error.value)
    assert text.isprintable() and len(text) < 1100
    return text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PRESET.replace("epochs", "epoch"),
            r"unknown key 'training\.epoch'; did you mean 'epochs'",
        ),
        (PRESET.replace("epochs: 3", "epochs: none"), r"training\.epochs: .*integer.*'none'"),
        ("features: lite0\n", "method: Field required$"),
        ("method: vsepp\ntraining: [1, 2\nfeatures: x\n", r"vsepp\.yaml:3: "),
        ("seed: 2026-13-01\n", r"vsepp\.yaml: [^\n]+$"),
        ("seed: \0\n", r"vsepp\.yaml: [^\n]+$"),
        ("a: !!int ''\n", "not valid YAML"),
        (f"{PRESET}seed: {'[' * 3000}\n", "not valid YAML"),
        (f"{PRESET}seed: 0x{'f' * 9000}\n", r"seed: .*64 bits"),
        (f"{PRESET}seed: true\n", "seed: expected a number"),
        (f"{PRESET}features: ../x\n".replace("features: lite0\n", ""), "features: "),
        (f"{PRESET}setting: {'x' * 5000}\n", r"found 'xxx.* \.\.\. .*xxx'$"),
        ('method: "a\\e[2J\\u202e"\nfeatures: "\\e]0;x"\n', r"\\x1b"),
        (f"{PRESET}method: swamp\n", r"vsepp\.yaml:5: the key 'method' is given twice"),
        (f"{PRESET}  batch: 1\n  epochs: 4\n", r"vsepp\.yaml:6: the key 'epochs' is given twice"),
        ("? [a]\n: {b: 1, b: 2}\n", r"vsepp\.yaml:2: the key 'b' is given twice"),
        ("model: &a {x: *a}\n", "100,000 values"),
        (f"a0: &a0 [1]\n{ALIASES}model: {{x: *a9}}\n", "100,000 values"),
        (f"a0: &a0 {{x: 1}}\n{MERGED}", "100,000 values"),
        ("- a\n", "expected a mapping"),
        ("", "expected a mapping"),
        (f"{PRESET}seed: 010\n", r"vsepp\.yaml:5: 010: a number with a leading zero"),
        (f"{PRESET}  devices: cuda\n", r"training\.devices: .*integer.* or .*'auto', found"),
        ('method: "a\\ud800"\n', r"vsepp\.yaml:1: .*ud800"),
        (f"#{'x' * 2**20}\n{PRESET}", "1,048,576 bytes"),
        ("method: vsepp\n# \udce9\n", r"vsepp\.yaml:2: not UTF-8"),
    ],
)
def test_a_faulty_preset_is_one_line(tmp_path, text, message):
    path = preset_file(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as error:
        read_preset(path)
    assert one_line(error).startswith(str(path))


def test_a_preset_that_is_not_there_is_told_from_one_that_is_no_file(tmp_path):
    path = preset_file(tmp_path)
    (tmp_path / "README.md").touch()
    for dataset, preset, message in (
        ("scenes", "vsep", "did you mean 'vsepp'?"),
        ("scens", "vsepp", "did you mean 'scenes'? (known: scenes)"),
    ):
        with pytest.raises(ConfigError) as error:
            preset_path(tmp_path, dataset, preset)
        assert message in one_line(error)
    for target, message in (
        ("/", "a folder, not"),
        ("vsepp.yaml", "cannot be read"),
        ("none", "a link to a file that"),
    ):
        path.unlink()
        path.symlink_to(target)
        with pytest.raises(ConfigError, match=rf"vsepp\.yaml: {message}"):
            read_preset(preset_path(tmp_path, "scenes", "vsepp"))


def test_a_key_may_change_what_is_merged_in(tmp_path):
    path = preset_file(tmp_path, "a: {b: &b {x: 1, y: 2}, c: {<<: *b, y: 3}}\n")
    assert read_yaml(path)["a"]["c"] == {"x": 1, "y": 3}


REPRODUCED = [
    {},
    {"seed": 3, "training.devices": 2},
    {"training.epochs": 30},
    {"model.similarity.alpha": 16},
    {"model.sets.size": 4, "model.sets.iterations": 4},
    {"model.similarity": {"name": "smooth_chamfer"}, "seed": 2},
]
SMALL_SCALE = [
    {"training.epochs": 1},
    {"training.epochs": 1, "setting": "reproduced"},
    {"setting": "small-scale"},
    {"model.size": 16},
    {"model.similarity.alpha": 8},
    {"model.similarity.alpha": 16, "training.epochs": 1},
    {"method": "maxmatch"},
]


def test_only_the_preset_as_it_stands_is_reproduced(tmp_path):
    """A default that is stated is no change, and no override makes a preset reproduced."""
    text = "method: dive\nfeatures: butd\nsetting: reproduced\nmodel: {sets: {size: 4}}\n"
    path = preset_file(tmp_path, text)
    for setting, several in (("reproduced", REPRODUCED), ("small-scale", SMALL_SCALE)):
        for overrides in several:
            assert read_preset(path, overrides, check_model).setting == setting
    path.write_text(PRESET)
    assert read_preset(path, {"setting": "reproduced"}).setting == "small-scale"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"seed": 1, "seed.deep": 2}, "'seed' is a value"),
        ({"training.epochs": 1, "training": {"clip_norm": 1.0}}, "after 'training.epochs', which"),
        ({"training.images_per_batch": 1}, "images_per_batch: .*equal to 2"),
        ({"training.clipnorm": 1.0}, "did you mean 'clip_norm'"),
        ({"training.parameter_groups": [{"match": "("}]}, r"0\.match: not a regular expression"),
        ({"warm_start": {"model": "vsepp"}}, r"warm_start\.model: .* match pattern"),
        ({"warm_start": {"model": "../scenes"}}, r"warm_start\.model: .* match pattern"),
        ({"warm_start": {"model": "a/b", "fresh": ["["]}}, "not a regular expression"),
        ({"training.schedule.restarts": [True, 5]}, "restarts: expected a number"),
    ],
)
def test_a_faulty_override_is_one_line(tmp_path, overrides, message):
    with pytest.raises(ConfigError, match=message) as error:
        read_preset(preset_file(tmp_path), overrides)
    one_line(error)


def test_a_preset_survives_its_own_yaml(tmp_path):
    path, again = preset_file(tmp_path), tmp_path / "again.yaml"
    for changes in (
        {},
        {"compile": False, "exchange": "bfloat16", "shared_statistics": True},
        {"deterministic": True, "features_in": "memory"},
        {"compile": True, "checkpoint_every": {"epochs": 2}, "strategy": "ddp", "logger": "csv"},
    ):
        preset = read_preset(path, {f"training.{key}": value for key, value in changes.items()})
        again.write_text(preset.to_yaml())
        assert read_preset(again) == preset


def test_a_missing_file_and_an_unknown_source_are_one_line(root, tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_params(tmp_path / "params.yaml")
    with pytest.raises(ConfigError, match=r"sources\.flickr8'; did you mean 'flickr8k'"):
        read_params(root / "params.yaml").source("flickr8")


def settings(**changes):
    lists = {"datasets": ["my", "my-data"], "presets": [], "features": []}
    return {**lists, "sources": {}, "extraction": {}, **changes}


def test_two_stages_of_one_name_are_refused():
    for key, names in (
        ("presets", ["x", "vsepp", "y", "data-vsepp", "z"]),
        ("features", ["lite0", "data-lite0"]),
        ("ensembles", ["a+b", "data-a+b"]),
    ):
        match = rf"{key}: '.+' of 'my.*' and '.+' of 'my.*' have one name in DVC, 'my-data-.+',"
        with pytest.raises(ConfigError, match=match) as error:
            validate(Params, settings(**{key: names}), "params.yaml")
        one_line(error)
        validate(Params, settings(**{key: names, "datasets": ["my", "data"]}), "params.yaml")
    params = validate(
        Params, settings(datasets=["my"], presets=["vsepp", "data-vsepp"]), "params.yaml"
    )
    params.check_names_with("data", "lite0")
    with pytest.raises(ConfigError, match="'my-data-vsepp'") as error:
        params.check_names_with("my-data", "lite0")
    one_line(error)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"evaluation": {"split": "tset"}}, r"evaluation\.split: .*'validation' or 'test'"),
        ({"ensembles": ["cora+vsepp+cora"]}, r"ensembles.*'cora\+vsepp\+cora' holds a model twice"),
        ({"shards": {"cache_gb": 1e300}}, "cache_gb"),
        ({"shards": {"urls": {"scenes": "s3://"}}}, r"urls\.scenes: expected a URL"),
        ({"extraction": {"h": {"grd": 1}}}, r"'extraction\.h\.grd'; did you mean 'grid'"),
        ({"shards": {"cache_gb": float("inf")}}, "cache_gb"),
        *(
            ({"indexes": {"mine": {"source": source, "model": "scenes/cora"}}}, "mine.source: ")
            for source in ("s3:x", "https://example.org/a", "a\0b", "")
        ),
    ],
)
def test_a_setting_that_no_stage_could_use_is_refused(changes, named):
    with pytest.raises(ConfigError, match=named) as error:
        validate(Params, settings(**changes), "params.yaml")
    one_line(error)


def test_the_scheme_of_a_url_may_be_in_capitals():
    urls = {"scenes": "HTTPS://Example.org/A", "my": "PIPE:cat /A/{}"}
    params = validate(Params, settings(shards={"urls": urls}), "params.yaml")
    assert params.shards.urls == {"scenes": "https://Example.org/A", "my": "pipe:cat /A/{}"}


class Inner(Strict):
    depth: int = 1
    width: int = 1


class Middle(Strict):
    inner: Inner = Inner()
    name: str = "plain"


class Outer(Grouped):
    middle: Middle = Middle(inner=Inner(depth=5, width=7), name="own")
    inner: Inner = Inner(width=3)
    count: int = 2


def test_what_is_not_said_is_the_models_own():
    result = validate(Outer, {"middle": {"inner": {"depth": 6}}, "inner": {}}, "test")
    assert result == Outer(middle=Middle(inner=Inner(depth=6, width=7), name="own"))
    assert Outer(inner=Inner(depth=4)).inner == Inner(depth=4, width=1)
    for value, message in (
        ({"middle": {"inner": {"dept": 1}}}, "middle.inner.dept'; did you mean 'depth'"),
        ({"inner": 3}, "inner"),
        ({"middel": {}}, "did you mean 'middle'"),
    ):
        with pytest.raises(ConfigError, match=message):
            validate(Outer, value, "test")


def test_whole_is_what_has_all_images_that_the_papers_have():
    whole = {"train": 113_287, "validation": 5_000, "test": 5_000}
    assert is_whole("coco", whole) and is_whole("cub", {"train": 6_000, "test": 4_721})
    assert not is_whole("coco", whole | {"train": 113_286})
    assert not is_whole("coco", {"train": 113_287}) and not is_whole("scenes", whole)
    assert is_papers_test("flickr30k", "test", 1_000)
    for given in (("flickr30k", "validation", 1_000), ("flickr30k", "test", 1_014)):
        assert not is_papers_test(*given)
    assert not is_papers_test("scenes", "test", 1_000)
