"""The page on features: its settings are settings, its table has every format."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from manymatch.config.params import Extraction
from manymatch.config.strict import validate
from manymatch.features import BACKBONES
from manymatch.features.importers import FORMATS, check_format

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text()


def test_every_block_is_valid_settings() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        for name, value in yaml.safe_load(block)["extraction"].items():
            settings = validate(Extraction, value, "docs/features.md")
            assert name in BACKBONES or settings.published
            for published in settings.published.values():
                check_format(published.format)


def test_every_format_has_a_row() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(FORMATS)
