"""A CNN fine-tuned from pixels, frozen first, with resume; and what cannot be trained so."""

import pytest
import torch
from killing import kill_during
from tiny_data import make_data, paint
from tiny_run import Run, preset

from manymatch.config.preset import Augmentation
from manymatch.model.checkpoint import load_model
from manymatch.networks.backbones import resnet
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.validation import validate
from manymatch.util.errors import ConfigError

CNN = {"backbone": "resnet50", "weights": "random", "crop": 32}
STEP = "manymatch.training.loop.Losses.forward"


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    monkeypatch.setitem(resnet.DEPTHS, "resnet50", [1, 1, 1, 1])


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    data = make_data(tmp_path_factory.mktemp("painted"), {"train": 16, "validation": 8})
    paint(data, 40)
    data.write_shards()
    return data


@pytest.fixture
def new_run(tmp_path, painted):
    return lambda name: Run(tmp_path / name, painted)


def pixel_preset(cnn=CNN, region_drop=0.0):
    model = {"size": 8, "word_size": 8, "cnn": cnn}
    group = {"match": "cnn", "from_epoch": 1, "lr_scale": 0.1}
    settings = {"epochs": 2, "weight_average": 0.0, "optimizer": {"lr": 0.001}}
    return preset(model, **settings, parameter_groups=(group,) if cnn else ()).model_copy(
        update={"method": "vsepp", "augmentation": Augmentation(region_drop=region_drop)}
    )


@pytest.mark.slow
def test_a_cnn_is_fine_tuned_and_a_killed_run_ends_in_the_same_bytes(new_run, painted):
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(pixel_preset())
    kill_during(lambda: killed.train(pixel_preset()), STEP, 4)
    killed.train(pixel_preset())
    assert killed.outputs() == whole.outputs()
    method, _, vocabulary = load_model(whole.model)
    splits = (ValidationBatches(Data(painted.shards, vocabulary), size, None) for size in (3, 8))
    one, other = (validate(method, split, torch.device("cpu")) for split in splits)
    assert one == pytest.approx(other)


def test_pixels_need_a_cnn_and_have_no_regions_to_drop(new_run, tiny, tmp_path):
    with pytest.raises(ConfigError, match="'grid' are pixels, which only a CNN or a backbone can"):
        new_run("run").train(pixel_preset(cnn=None))
    with pytest.raises(ConfigError, match="'grid' are pixels without regions"):
        new_run("run").train(pixel_preset(region_drop=0.1))
    with pytest.raises(ConfigError, match="a CNN or backbone reads pixels"):
        Run(tmp_path, tiny).train(pixel_preset())
