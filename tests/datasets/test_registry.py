import pytest

from manymatch import datasets
from manymatch.datasets.download import download
from manymatch.util.errors import ConfigError


@pytest.mark.parametrize("ask", [datasets.dataset, lambda name: datasets.check_settings(name, {})])
def test_an_unknown_name_suggests_the_nearest(ask):
    with pytest.raises(ConfigError) as caught:
        ask("flickr8")
    assert str(caught.value) == (
        "no dataset 'flickr8'; did you mean 'flickr8k'? "
        "(known: coco, conceptual_captions, cub, flickr30k, flickr8k, lsmdc, msrvtt, own, "
        "scenes, youcook2)"
    )


def test_an_unknown_setting_suggests_the_nearest():
    with pytest.raises(ConfigError) as caught:
        datasets.check_settings("flickr8k", {"folder": "x", "caption": "y"})
    assert "params.yaml: sources.flickr8k: unknown key 'caption'" in str(caught.value)
    assert "did you mean 'captions'?" in str(caught.value)


def test_a_generated_data_set_with_a_name_of_its_own_says_its_kind(tmp_path):
    settings = {"kind": "scenes", "train": 2, "validation": 1, "test": 0, "image_size": 32}
    download("more_scenes", settings, tmp_path / "more_scenes")
    assert len(list(datasets.dataset("scenes").captions(tmp_path / "more_scenes"))) > 3
    with pytest.raises(ConfigError, match="did you mean 'scenes'"):
        download("more_scenes", settings | {"kind": "scene"}, tmp_path / "none")
