"""Methods, data sets and image features of another installed package, by its entry points."""

import re
import sys

import pytest
import torch

from manymatch import datasets, features, methods
from manymatch.batch.vocabulary import Vocabulary
from manymatch.util.code_hash import installed
from manymatch.util.errors import ConfigError

ENTRY_POINTS = """[manymatch.methods]
bag = other_package.bag
two = other_package.two

[manymatch.datasets]
pairs = other_package.pairs:Pairs

[manymatch.features]
histogram = other_package.histogram:build
"""
PAIRS = """from manymatch.config.strict import Strict
from manymatch.datasets.base import Dataset


class Pairs(Dataset):
    settings_model = Strict
    download = captions = None
"""


@pytest.fixture
def package(root, tmp_path, monkeypatch):
    """A package with the method of the page, whose temperature is in a module of its own."""
    page = (root / "docs" / "adding-a-method.md").read_text("utf-8")
    found = re.search(r"```python\n(# src/manymatch/methods/bag.py\n.*?)```", page, re.S)
    assert found
    folder = tmp_path / "other_package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    bag = "from other_package.numbers import TEMPERATURE\n" + found[1]
    (folder / "bag.py").write_text(bag.replace("Positive = 0.05", "Positive = TEMPERATURE"))
    (folder / "numbers.py").write_text("TEMPERATURE = 0.25\n")
    (folder / "two.py").write_text("")
    (folder / "pairs.py").write_text(PAIRS)
    (folder / "histogram.py").write_text("def build(name, sources):\n    return name\n")
    facts = tmp_path / "other_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("other_package")]:
        monkeypatch.delitem(sys.modules, name)  # of an earlier test
    return folder


def test_they_are_found_by_name(package):
    words = Vocabulary([*Vocabulary.SPECIAL, "dog"])
    method = methods.build_method("bag", {"size": 4}, vocabulary=words, feature_width=3)
    assert isinstance(method, torch.nn.Module) and method.temperature == 0.25
    assert type(datasets.dataset("pairs")).__name__ == "Pairs"
    assert features.build_backbone("histogram", None) == "histogram"


def test_unknown_and_faulty_ones_are_one_line(package):
    with pytest.raises(ConfigError, match="'bagg' does not exist; did you mean 'bag'"):
        methods.entry_point("bagg")
    for name in ("other_package.bag", "os:system", "other_package.bag:Bag"):
        with pytest.raises(ConfigError, match="does not exist"):
            methods.entry_point(name)
    with pytest.raises(ConfigError, match="defines 0 subclasses of Method"):
        methods.method_class("two")
    for fault in ("1 / 0", "import no_such_package", "def f(:", "raise SystemExit(0)"):
        for module, imported in (("two", methods.method_class), ("pairs", datasets.dataset)):
            (package / f"{module}.py").write_text(f"{fault}\n")
            sys.modules.pop(f"other_package.{module}", None)
            with pytest.raises(ConfigError, match=rf"other_package\.{module}.*cannot be imported"):
                imported(module)
    (package / "histogram.py").write_text("")
    with pytest.raises(ConfigError, match=r"'other_package\.histogram:build' cannot be imported"):
        features.build_backbone("histogram", None)
    again = package.parent / "again-1.0.dist-info"
    again.mkdir()
    (again / "METADATA").write_text("Metadata-Version: 2.1\nName: again\nVersion: 1.0\n")
    (again / "entry_points.txt").write_text("[manymatch.methods]\nbag = again.bag\n")
    with pytest.raises(ConfigError, match=r"again\.bag and other_package\.bag"):
        methods.entry_point("bag")


def test_a_change_of_the_packages_code_changes_the_hash(package):
    def listing():
        installed.cache_clear()
        return installed().listing(methods.entry_point("bag"))

    before = listing()
    assert "other_package.numbers" in before and "manymatch.losses.contrastive" in before
    (package / "numbers.py").write_text("# A remark.\nTEMPERATURE = 0.25\n")
    assert listing() == before
    (package / "numbers.py").write_text("TEMPERATURE = 0.5\n")
    assert listing() != before
