"""Whole data sets and parts of them."""

from __future__ import annotations

from manymatch.config.galleries import is_papers_test, is_whole


def test_whole_is_what_has_all_images_that_the_papers_have() -> None:
    whole = {"train": 113_287, "validation": 5_000, "test": 5_000}
    assert is_whole("coco", whole)
    assert not is_whole("coco", whole | {"train": 113_286})
    assert not is_whole("coco", {"train": 113_287})
    assert is_whole("cub", {"train": 6_000, "test": 4_731})
    assert not is_whole("scenes", whole)


def test_the_papers_test_is_one_split_of_one_size() -> None:
    assert is_papers_test("flickr30k", "test", 1_000)
    assert not is_papers_test("flickr30k", "validation", 1_000)
    assert not is_papers_test("flickr30k", "test", 1_014)
    assert not is_papers_test("scenes", "test", 1_000)
