"""`python -m pipelines.deployments`: what can be run by name, `prefect deployment run train-cora`.

The deployments are those of `prefect.yaml`, `train` for any preset and data set, `train-METHOD` for
each method that has a preset for the data set `scenes`, and `train-PRESET` for each other preset of
`params.yaml`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.responses import DeploymentResponse

from manymatch.config.layout import Layout
from manymatch.config.params import read_params
from manymatch.methods import METHODS
from manymatch.util.errors import ManyMatchError, first_line
from manymatch.util.progress import say

_DATASET = "scenes"
"""The default data set of the flow `train`."""


def deployments(root: Path) -> dict[str, Any]:
    """`prefect.yaml` of the checkout `root`, with the deployments that train.

    The preset of `params.yaml` that a deployment is named after is that of the first data set which
    has the preset.

    Raises:
        ConfigError: `params.yaml` is missing or faulty.
    """
    content: dict[str, Any] = yaml.safe_load((root / "prefect.yaml").read_text(encoding="utf-8"))
    layout = Layout()
    params = read_params(root / layout.params)

    def datasets_with(preset: str) -> list[str]:
        folders = (root / layout.presets / name for name in (_DATASET, *params.datasets))
        return [folder.name for folder in folders if (folder / f"{preset}.yaml").is_file()]

    named = dict[str, dict[str, str]]()
    for name in dict.fromkeys([*METHODS, *params.presets]):
        found = datasets_with(name)
        if found and (found[0] == _DATASET or name in params.presets):
            dataset = {} if found[0] == _DATASET else {"dataset": found[0]}
            named[f"train-{name}"] = {"preset": name, **dataset}
    described = {"train": "Train and evaluate one preset: -p preset=cora -p dataset=flickr8k"}
    described |= {key: f"Train and evaluate the preset {named[key]['preset']}" for key in named}
    content["deployments"] += [
        {
            "name": name,
            "description": description,
            "parameters": named.get(name, {}),
            **content["definitions"]["train"],
        }
        for name, description in described.items()
    ]
    return content


def deploy() -> None:
    """Replace the deployments of the server by those of this checkout, the current folder. What
    somebody has scheduled on the server stays.

    Raises:
        ManyMatchError: Prefect refuses the file, or its server does not answer.
    """
    try:
        with get_client(sync_client=True) as client:
            before = client.read_deployments()
            _replace_deployments()
            for deployment in before:
                keep_schedules(client, deployment)
    except httpx.HTTPError as error:
        raise ManyMatchError(
            f"prefect.yaml could not be deployed: no answer of the server ({first_line(error)}). "
            "Start the server, or correct PREFECT_API_URL and PREFECT_API_AUTH_STRING"
        ) from None


def keep_schedules(client: SyncPrefectClient, before: DeploymentResponse) -> None:
    """Give a deployment the schedules back that somebody has added or switched on, as it was
    `before`. A schedule with a slug is one of `prefect.yaml`."""
    present = client.read_deployment_schedules(before.id)
    for kept in before.schedules:
        same = next(
            (
                one
                for one in present
                if one.schedule == kept.schedule or (one.slug and one.slug == kept.slug)
            ),
            None,
        )
        if same is None and kept.slug is None:
            fields = set(DeploymentScheduleCreate.model_fields)
            added = DeploymentScheduleCreate(**kept.model_dump(include=fields))
            client.create_deployment_schedules(before.id, [added])
        elif same and kept.active:
            client.update_deployment_schedule(before.id, same.id, active=True)


def _replace_deployments() -> None:
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
