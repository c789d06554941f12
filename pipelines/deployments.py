"""`python -m pipelines.deployments`: what can be run by name, `prefect deployment run train-cora`.

The deployments are those of `prefect.yaml`, and `train-METHOD` for each method that has a preset
for the data set `scenes`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from manymatch.config.layout import Layout
from manymatch.methods import METHODS
from manymatch.util.errors import ManyMatchError
from manymatch.util.progress import say

_DATASET = "scenes"
"""The default data set of the flow `train`."""


def deployments(root: Path) -> dict[str, Any]:
    """`prefect.yaml` of the checkout `root`, with the deployments of the methods."""
    content: dict[str, Any] = yaml.safe_load((root / "prefect.yaml").read_text(encoding="utf-8"))
    presets = root / Layout().presets / _DATASET
    methods = [name for name in METHODS if (presets / f"{name}.yaml").is_file()]
    train = content["definitions"]["train"]
    content["deployments"] += [
        {
            "name": f"train-{name}",
            "description": f"Train and evaluate the preset {name}",
            "parameters": {"preset": name},
            **train,
        }
        for name in methods
    ]
    return content


def deploy() -> None:
    """Replace the deployments of the server by those of this checkout, the current folder.

    Raises:
        ManyMatchError: Prefect refuses the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "prefect.yaml")
        file.write_text(yaml.safe_dump(deployments(Path())), encoding="utf-8")
        command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
        done = subprocess.run(
            [*command, "--prefect-file", str(file)], capture_output=True, text=True
        )
    if done.returncode:
        raise ManyMatchError(f"prefect.yaml could not be deployed: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        deploy()
    except ManyMatchError as error:
        say(f"error: {error}")
        sys.exit(1)
