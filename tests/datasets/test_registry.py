import pytest

from manymatch import datasets
from manymatch.config.strict import Strict
from manymatch.system.errors import ConfigError


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_every_name_gives_a_dataset(name):
    dataset = datasets.dataset(name)
    assert all(callable(getattr(dataset, part)) for part in ("download", "captions", "relevance"))


def test_settings_are_checked_as_the_datasets_own():
    settings = datasets.check_settings("flickr8k", {"folder": "somewhere"})
    assert isinstance(settings, Strict) and settings.folder == "somewhere"


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
