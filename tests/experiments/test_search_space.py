"""Spaces of settings: every fault is one line before anything is trained."""

from pathlib import Path

import pytest
import yaml
from made_searches import EPOCHS, LR, SPACE, write_space

from manymatch.config.layout import Layout
from manymatch.config.names import preset_path
from manymatch.config.preset import read_preset
from manymatch.util.errors import ConfigError

pytest.importorskip("optuna")

from manymatch.experiments.tuning.search import Search
from manymatch.experiments.tuning.space import read_space

ROOT = Path(__file__).parents[2]
SHARED = {
    "ends": ({LR: {"low": 1.0, "high": 0.1}}, "'low' must be below 'high'"),
    "one end": ({LR: {"low": 1.0}}, "expected either 'low' and 'high'"),
    "no name": ({LR: ["dropout"]}, "shared"),
    "no domain": ({LR: "dropuot"}, "shared: .*did you mean 'dropout'"),
    "key": ({"training.optimizer.rate": {"values": [1, 2]}}, "unknown key 'training.opt"),
    "value": ({"size": {"values": [16, 17]}}, r"tiny\.yaml: size: .*multiple of 2"),
    "float": ({"training.images_per_batch": {"low": 8, "high": 32}}, "valid integer"),
    "twice": ({"model.feature_dropout": "dropout"}, "'model.feature_dropout' searches"),
    "value twice": ({LR: {"values": [0.1, 0.1]}}, f"{LR}: 'values' lists a value twice"),
    "searched twice": (
        {LR: {"values": [0.1, 0.2]}, "margin": {"values": [0.1, 0.2]}},
        r"tiny\.yaml: loss: 'margin' searches 'model\.margin' too",
    ),
    "features": ({"features": {"values": ["grid", "pixels"]}}, "features: a search has one"),
    "method": ({"method": {"values": ["vsepp", "dive"]}}, "method: .*dive"),
}
FAULTS = {
    **{name: ({"shared": shared}, words) for name, (shared, words) in SHARED.items()},
    "domains": ({"domains": ["dropout"]}, "domains: Input should be a valid dictionary"),
    "no domains": ({"domains": None}, "domains: Input should be a valid dictionary"),
    "no method": ({"methods": {"cora": {}}}, r"tiny\.yaml: methods: no settings of 'vsepp'"),
    "method's name": (
        {"methods": SPACE["methods"] | {"corra": {}}},
        r"tiny\.yaml: methods: method 'corra' .*did you mean 'cora'",
    ),
    "set and searched": ({"set": {LR: 0.1}}, f"set: {LR}: '{LR}' searches this setting"),
    "repeats and searched": (
        {"repeats": {"set": {LR: 0.1}}},
        rf"repeats\.set: {LR}: .*is searched",
    ),
    "no key": ({"methods": {"vsepp": {"feature_dropuot": "dropout"}}}, "key 'feature_dropuot'"),
    "set": ({"set": {EPOCHS: 0}}, EPOCHS),
    "preset": ({"set": {"preset": "cora"}}, "'preset' is no setting of a trial"),
    "repeats": ({"repeats": {"set": {"training.epoch": 5}}}, r"repeats\.set: .*epoch"),
    "starts from": ({"starts_from": {"vsep": "vsepp"}}, "starts_from: .*did you mean 'vsepp'"),
    "starts from none": ({"starts_from": {"vsepp": "grid"}}, r"starts_from: .*grid\.yaml"),
    "like itself": ({"like": "tiny"}, "has a 'like' itself"),
    "like": ({"like": "base", "methods": ["vsepp"]}, r"tiny\.yaml: methods"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_space_is_one_line(checkout, fault):
    change, message = FAULTS[fault]
    write_space(checkout, SPACE | change)
    base = checkout.layout.search_space("base")
    base.write_text(yaml.safe_dump(SPACE | {"starts_from": {"other": "vsepp"}}))
    with pytest.raises(ConfigError, match=f"^[^\n]*{message}[^\n]*$"):
        Search.of(checkout.layout, "tiny", "vsepp")


def test_a_data_set_without_a_space_and_a_method_that_learns_nothing_are_told(checkout):
    (checkout.layout.presets / "tiny" / "zero.yaml").write_text(
        "method: pretrained\nfeatures: x\nmodel: {model: m}\n"
    )
    with pytest.raises(ConfigError, match="zero: the method 'pretrained' learns nothing"):
        Search.of(checkout.layout, "tiny", "zero")
    with pytest.raises(ConfigError, match=r"tiny\.yaml: no such file\. .*like: scenes"):
        Search.of(checkout.layout, "tiny", "vsepp")
    write_space(checkout, {"like": "scenes"})
    checkout.layout.search_space("scenes").write_text(yaml.safe_dump(SPACE))
    assert Search.of(checkout.layout, "tiny", "vsepp").method


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
def test_every_method_s_preset_lies_inside_of_its_space(dataset):
    space = read_space(Layout(ROOT).search_space(dataset))
    for name in space.methods:
        preset = read_preset(preset_path(Layout(ROOT).presets, dataset, name))
        one = Search(Layout(ROOT), dataset, name, space, "", "", {}, preset)
        domains = space.method_domains(name)
        assert one.first_parameters()[0].keys() >= domains.keys(), name
        options = [domain.options or {} for domain in domains.values()]
        for settings in (parts for option in options for parts in option.values()):
            one.preset({k: v for k, v in settings.items() if not hasattr(v, "draw")})
