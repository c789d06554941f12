"""The files of pools fit the deployments, and what Prefect's own workers expect."""

import asyncio
import json
import pkgutil

import pytest
import yaml
from prefect.client.schemas.actions import WorkPoolCreate

KINDS = {
    "process": "prefect.workers.process:ProcessJobConfiguration",
    "docker": "prefect_docker.worker:DockerWorkerJobConfiguration",
    "kubernetes": "prefect_kubernetes.worker:KubernetesWorkerJobConfiguration",
}
"""What Prefect's own workers read. The packages load when a test needs them."""


def template(root, kind):
    return json.loads((root / "deploy" / f"{kind}.json").read_text())


def configured(root, kind, values):
    """What a worker of that kind makes of a deployment's variables."""
    kind_of_job = pkgutil.resolve_name(KINDS[kind])
    result = asyncio.run(kind_of_job.from_template_and_values(template(root, kind), values))
    assert isinstance(result, kind_of_job)
    return result


FOREIGN = {
    "command": "touch file",
    "env": {"PATH": "/elsewhere"},
    "env.PATH": "/elsewhere",
    "working_dir": "/elsewhere",
    "image": "theirs",
    "volumes": ["/:/host"],
    "network_mode": "bridge",
    "container_create_kwargs": {"privileged": True},
    "namespace": "theirs",
    "stream_output": True,
}
"""What a request must not choose."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_chooses_no_command_environment_or_folder(root, kind):
    WorkPoolCreate(name="manymatch", type=kind, base_job_template=template(root, kind))
    schema = template(root, kind)["variables"]
    assert schema["additionalProperties"] is False  # so the server refuses the request
    assert not set(FOREIGN) & set(schema["properties"])
    name = {"name": "run"}
    plain, asked = (configured(root, kind, name | more) for more in ({}, FOREIGN))
    assert asked.model_dump() == plain.model_dump()
    assert plain.command == "python -m pipelines.engine"


def test_a_container_and_a_pod_have_what_the_manifests_name(root):
    docker = configured(root, "docker", {"name": "run"})
    assert (docker.image, docker.volumes) == ("manymatch", ["manymatch:/shared"])
    assert docker.get_network_mode() == "host"

    result = configured(root, "kubernetes", {"name": "run", "gpus": 2})
    pod = result.job_manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["args"]) == ("manymatch", result.command.split())
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes

    objects = {}
    namespace = template(root, "kubernetes")["job_configuration"]["namespace"]
    for entry in yaml.safe_load_all((root / "deploy" / "kubernetes.yaml").read_text()):
        objects.setdefault(entry["kind"], []).append(entry)
        assert entry["metadata"]["namespace"] == namespace
    claims = [entry["metadata"]["name"] for entry in objects["PersistentVolumeClaim"]]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] in claims
    (account,), (binding,) = objects["ServiceAccount"], objects["RoleBinding"]
    (role,), (worker,) = objects["Role"], objects["Deployment"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [entry["name"] for entry in binding["subjects"]] == [account["metadata"]["name"]]
    labels = worker["spec"]["template"]["metadata"]["labels"]
    assert labels == worker["spec"]["selector"]["matchLabels"]
