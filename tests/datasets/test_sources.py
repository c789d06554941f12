import hashlib

import pytest

from manymatch import datasets
from manymatch.config.strict import validate
from manymatch.datasets.coco import Coco, CocoSettings
from manymatch.datasets.download import download
from manymatch.datasets.fetching.sources import Source, local_path, obtain
from manymatch.util.errors import ConfigError, SourceError


def source(value):
    return Source.model_validate(value)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_a_local_file_is_used_where_it_lies(tmp_path, form):
    path = tmp_path / "a b.txt"
    path.write_text("x")
    address = form.format(path if form == "{}" else str(path).replace(" ", "%20"))
    assert obtain(source(address), "the file", tmp_path / "waiting") == path
    assert not (tmp_path / "waiting").exists()


def test_a_folder_is_used_where_it_lies_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    assert obtain(source("file:x"), "it", tmp_path).resolve() == tmp_path / "x"
    with pytest.raises(ConfigError, match="is a folder, which has no size or sha256"):
        obtain(source({"url": "x", "sha256": "0" * 64}), "it", tmp_path)


def test_size_and_checksum_of_a_local_file_are_checked(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"content")
    sha = hashlib.sha256(b"content").hexdigest()
    good = {"url": str(path), "size": 7, "sha256": sha}
    assert obtain(source(good), "it", tmp_path) == path
    with pytest.raises(SourceError) as caught:
        obtain(source(good | {"sha256": "0" * 64}), "flickr8k images", tmp_path)
    assert str(caught.value) == (
        f"flickr8k images: {path}: its sha256 is {sha}, expected {'0' * 64}. "
        "Download the file again or correct params.yaml"
    )
    with pytest.raises(SourceError, match="it has 7 bytes, expected 8"):
        obtain(source(good | {"size": 8}), "it", tmp_path)


def test_a_missing_file_is_one_line_unless_a_local_mirror_helps(tmp_path):
    value = {"url": str(tmp_path / "a"), "mirrors": [str(tmp_path / "b")]}
    words = rf"flickr8k images: no such file or folder: {tmp_path}/a, {tmp_path}/b\. Correct"
    with pytest.raises(SourceError, match=words):
        obtain(source(value), "flickr8k images", tmp_path)
    (tmp_path / "b").write_text("x")
    assert obtain(source(value), "it", tmp_path) == tmp_path / "b"


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host/x",
        "s3://bucket/x",
        "file://host/x",
        "https:///x",
        "https://me:word@host/x",
        "http://[bad/x",
        "~nobody-at-all/x",
    ],
)
def test_other_addresses_are_refused_when_the_settings_are_read(address):
    with pytest.raises(ConfigError) as caught:
        source({"url": "https://host/x", "mirrors": [address]})
    assert str(caught.value).startswith(f"{address}: ")


def test_an_empty_path_is_not_the_current_folder(tmp_path):
    with pytest.raises(ConfigError, match="empty path or address"):
        Coco().download(validate(CocoSettings, {"folder": " "}, "x"), tmp_path)


@pytest.mark.parametrize("end", ["/", "", "/..", f"/{'x' * 300}"])
def test_a_web_address_ends_in_a_short_name(tmp_path, end):
    assert local_path(f"https://host{end}") is None
    with pytest.raises(ConfigError, match=r"does not end in a file's name|is too long"):
        obtain(source(f"https://host{end}"), "it", tmp_path)


@pytest.mark.parametrize("before", [[], ["a"]])
def test_an_unknown_key_of_a_source_names_the_nearest(before):
    value = {"captions": [*before, {"url": "b", "mirror": []}]}
    words = r"unknown key 'captions\.\d\.mirror'; did you mean 'mirrors'\?"
    with pytest.raises(ConfigError, match=words):
        validate(CocoSettings, value, "sources.coco")


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ConfigError) as caught:
        datasets.dataset("flickr8")
    assert str(caught.value) == (
        "data set 'flickr8' does not exist; did you mean 'flickr8k'? "
        "(known: coco, conceptual_captions, cub, flickr30k, flickr8k, lsmdc, msrvtt, own, "
        "scenes, youcook2)"
    )


def test_a_generated_data_set_with_a_name_of_its_own_says_its_kind(tmp_path):
    settings = {"kind": "scenes", "train": 2, "validation": 1, "test": 0, "image_size": 32}
    download("more_scenes", settings, tmp_path / "more_scenes")
    assert len(list(datasets.dataset("scenes").captions(tmp_path / "more_scenes"))) > 3
    with pytest.raises(ConfigError, match="did you mean 'scenes'"):
        download("more_scenes", settings | {"kind": "scene"}, tmp_path / "none")
