"""Training crops of random size, shape and place, and erased parts, beside the rules by hand."""

import math

import pytest
import torch
from torch.nn import functional

from manymatch.networks.encoders.cnn import CNN, CNNSettings
from manymatch.networks.encoders.pixels import erased, resized_crops

SIDE, COUNT = 16, 1500


def places(count, whole):
    """Pictures whose pixels hold their row and column (the third channel is 7)."""
    row, column = torch.meshgrid(torch.arange(whole), torch.arange(whole), indexing="ij")
    picture = torch.stack([row, column, torch.full_like(row, 7)], 2).to(torch.uint8)
    return picture.expand(count, -1, -1, -1)


def edges(crops):
    """First and last row and column of each crop, the columns as if not mirrored."""
    rows, columns = crops[:, :, 0, 0], crops[:, 0, :, 1]
    return rows[:, 0], rows[:, -1], columns.amin(1), columns.amax(1)


@pytest.mark.parametrize("area", [(0.08, 1.0), (0.5, 0.5)])
def test_size_shape_and_place_are_drawn_as_torchvision_does(area):
    torch.manual_seed(0)
    whole = 100
    crops = resized_crops(places(COUNT, whole), SIDE, area)
    assert crops.shape == (COUNT, SIDE, SIDE, 3) and crops.dtype == torch.float32
    torch.testing.assert_close(crops[..., 2], torch.full_like(crops[..., 2], 7.0))
    top, bottom, left, right = edges(crops)
    assert min(top.min(), left.min()) >= 0 and max(bottom.max(), right.max()) <= whole - 1
    # Between the centres of the first and the last pixel lie (SIDE - 1) / SIDE of the crop.
    height, width = (
        (last - first) * SIDE / (SIDE - 1) for first, last in ((top, bottom), (left, right))
    )
    shares = height * width / whole**2
    assert shares.min() > 0.9 * area[0] - 0.02 and shares.max() <= 1.02
    ratios = (width / height).log() / math.log(4 / 3)
    assert ratios.abs().max() < 1.3 and ratios.mean().abs() < 0.05
    if area[0] == area[1]:
        assert shares.mean() == pytest.approx(area[0], rel=0.05)
    else:
        assert len(shares[shares < 0.5]) > COUNT / 10 < len(shares[shares > 0.6])
    mirrored = (crops[:, 0, 0, 1] > crops[:, 0, -1, 1]).float().mean()
    assert abs(mirrored - 0.5) < 0.05


def test_a_crop_is_the_part_of_the_picture_resized():
    torch.manual_seed(1)
    whole, side = 48, 24
    pictures = torch.randint(0, 256, (20, whole, whole, 3), dtype=torch.uint8)
    state = torch.get_rng_state()
    crops = resized_crops(pictures, side, (0.1, 0.9))
    torch.set_rng_state(state)
    where = resized_crops(places(20, whole), side, (0.1, 0.9))
    for crop, place, picture in zip(crops, where, pictures, strict=True):
        plain, place = (
            (crop, place) if place[0, 0, 1] <= place[0, -1, 1] else (crop.flip(1), place.flip(1))
        )
        bounds = []
        for values in (place[:, 0, 0], place[0, :, 1]):
            step = values[side // 2] - values[side // 2 - 1]
            size = round(float(step) * side)
            start = round(float(values[side // 2]) + 0.5 - float(step) * (side // 2 + 0.5))
            bounds.append((start, size))
        (top, height), (left, width) = bounds
        part = picture[top : top + height, left : left + width].permute(2, 0, 1)[None].float()
        expected = functional.interpolate(part, (side, side), mode="bilinear", align_corners=False)
        torch.testing.assert_close(plain, expected[0].permute(1, 2, 0), atol=0.05, rtol=0)


def test_a_rectangle_is_erased_in_some_pictures():
    torch.manual_seed(0)
    probability, whole, colour = 0.4, 40, torch.tensor([1000.0, 2000.0, 3000.0])
    pictures = places(COUNT, whole)
    result = erased(pictures, probability, colour)
    gone = (result == colour).all(-1)
    assert torch.equal(result[~gone], pictures.float()[~gone])
    hit = gone.flatten(1).any(1)
    assert hit.float().mean() == pytest.approx(probability, abs=0.04)
    heights, widths = (gone[hit].any(axis).sum(1) for axis in (2, 1))
    shares = gone[hit].sum((1, 2)) / whole**2
    assert torch.equal(heights * widths, gone[hit].sum((1, 2)))  # one rectangle each
    assert shares.min() > 0.01 and shares.max() < 0.36
    assert shares.mean() == pytest.approx((0.02 + 1 / 3) / 2, abs=0.02)
    ratios = (heights / widths).log() / math.log(1 / 0.3)
    assert ratios.abs().max() < 1.2 and ratios.mean().abs() < 0.1
    for axis in (1, 2):  # the rectangles lie everywhere
        assert gone[hit].any(axis).float().mean(0).min() > 0.02


@pytest.mark.parametrize(
    "settings", [{"crop_area": (0.3, 1.0)}, {"random_crops": False, "erasing": 0.99}], ids=str
)
def test_only_training_draws_sizes_or_erases(settings):
    chosen = CNNSettings(backbone="resnet50", weights="random", crop=32, **settings)
    cnn, seen, pictures = CNN(chosen), [], places(8, 40)
    cnn.network.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        cnn.train()(pictures.reshape(8, 1600, 3)), cnn.eval()(pictures.reshape(8, 1600, 3))
    middle = pictures[:, 4:36, 4:36].permute(0, 3, 1, 2)
    assert seen[0].dtype == torch.float32 and seen[0].shape == middle.shape
    assert torch.equal(seen[1], middle)
    if "erasing" in settings:
        gone = (seen[0] == cnn.network.mean).all(1)
        assert gone.flatten(1).any(1).sum() > 4
        kept = [part.permute(0, 2, 3, 1)[~gone].float() for part in (seen[0], middle)]
        assert torch.equal(*kept)
