"""What is left out while Lightning loads."""

from __future__ import annotations

import importlib
import json
import sys

from manymatch.training.lightning import _hide_modules


def test_a_module_is_empty_only_in_the_block_and_only_if_it_was_not_loaded() -> None:
    with _hide_modules("unheard_of", "json"):
        empty = importlib.import_module("unheard_of")
        assert empty.anything is None
        assert importlib.import_module("json").loads is json.loads
    assert "unheard_of" not in sys.modules and sys.modules["json"] is json


def test_what_lightning_did_not_load_is_whole() -> None:
    assert callable(importlib.import_module("scipy.signal").find_peaks)
    assert importlib.import_module("transformers").BertConfig().hidden_size == 768
