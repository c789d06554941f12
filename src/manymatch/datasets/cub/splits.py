"""Which images of CUB train, validate and test: by class (Xian et al. 2017), as PCME uses it.

The 50 test classes are never seen in training. Some images of the other classes are kept for the
test too, so that both settings, seen and unseen classes, are scored from the one test split: an
image's class tells them apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from manymatch.datasets.cub.fetch import LISTS
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

HELD_OUT = 10
"""Without validation classes every tenth image of a training class validates: no test image may
choose the checkpoint."""
_NUMBER = re.compile(r"(\d{1,3})\.")


@dataclass(frozen=True)
class Splits:
    """Class numbers, and seen test images (stems)."""

    train: frozenset[int]
    validation: frozenset[int]
    test: frozenset[int]
    seen_test: frozenset[str]

    def of(self, class_number: int, stem: str, place: int) -> str | None:
        """The split of an image that is the `place`-th of its class's other images; None: of no
        split."""
        if class_number in self.test or self.is_seen_test(class_number, stem):
            return "test"
        if class_number in self.validation:
            return "validation"
        if class_number not in self.train:
            return None
        held_out = not self.validation and place % HELD_OUT == HELD_OUT - 1
        return "validation" if held_out else "train"

    def is_seen_test(self, class_number: int, stem: str) -> bool:
        """Whether an image of a class that is not a test class is kept for the test."""
        return class_number not in self.test and stem in self.seen_test


def read_splits(raw: Path) -> Splits:
    """The lists under `raw`; a class in two of them is a `DataError`."""
    classes = {
        key: _classes(raw / LISTS[key])
        for key in ("train_classes", "validation_classes", "test_classes")
    }
    seen: dict[int, str] = {}
    for key, numbers in classes.items():
        for number in sorted(numbers):
            if number in seen:
                raise DataError(f"{raw}: class {number} is in {seen[number]} and in {LISTS[key]}")
            seen[number] = LISTS[key]
    train, validation, test = classes.values()
    return Splits(train, validation, test, frozenset(_stems(raw / LISTS["seen_test"])))


def _classes(path: Path) -> frozenset[int]:
    if not path.is_file():
        return frozenset()
    return frozenset(class_number(text, f"{path}:{n}") for n, text in numbered_lines(path))


def class_number(name: str, where: str) -> int:
    """The number of a class such as `004.Groove_billed_Ani`."""
    match = _NUMBER.match(name.strip())
    if match is None:
        raise DataError(f"{where}: expected a class such as 004.Groove_billed_Ani, found {name!a}")
    return int(match[1])


def _stems(path: Path) -> set[str]:
    return {Path(text.strip()).stem for _, text in numbered_lines(path)}
