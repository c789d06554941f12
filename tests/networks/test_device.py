"""The device that a command computes on."""

import pytest

from manymatch.networks.device import pick_device
from manymatch.util.errors import ConfigError


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "mps", "cpu:0", "cpu:9999"])
def test_an_unknown_device_is_refused(device):
    with pytest.raises(ConfigError, match="device"):
        pick_device(device)
