"""The data set `scenes`: generated pictures with exact ground truth (see `manymatch.scenes`)."""

from manymatch.datasets.scenes.dataset import Scenes
from manymatch.datasets.scenes.settings import ScenesSettings
from manymatch.datasets.scenes.truth import truth_graphs

__all__ = ["Scenes", "ScenesSettings", "truth_graphs"]
