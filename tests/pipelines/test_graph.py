"""The flows' stages and their order are DVC's."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from dvc.repo import Repo
from dvc.repo.reproduce import plan_repro
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL, temporary_settings

from manymatch.methods import METHODS
from manymatch.util.errors import ConfigError, ManyMatchError
from pipelines.deployments import deploy, deployments, keep_schedules
from pipelines.gpus import QUEUE, WITHOUT
from pipelines.graph import locked, read_graph
from pipelines.stage import NETWORK


def test_the_order_is_that_of_dvc_repro(root, graph):
    with Repo(str(root)) as repo:
        planned = [stage.addressing for stage in plan_repro(repo.index.graph)]
    assert [stage.name for stage in graph.stages] == planned
    assert {stage.kind for stage in graph.stages} >= NETWORK


def test_a_fault_in_dvc_yaml_is_one_line_and_a_lock_file_is_not_read_while_dvc_writes_it(tmp_path):
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\nno_scm = true\n")
    (tmp_path / "dvc.yaml").write_text("stages:\n  train:\n    cmdd: true\n")
    with pytest.raises(ConfigError, match=r"^dvc.yaml: [^\n]*validation failed[^\n]+$"):
        read_graph(tmp_path)
    (tmp_path / "dvc.yaml").write_text("stages:\n  train:\n    cmd: 'true'\n")
    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path):
            (tmp_path / "dvc.lock").write_text("stages: {train: {cmd: 'tr")
            reading = pool.submit(read_graph, tmp_path)
            with pytest.raises(TimeoutError):
                reading.result(timeout=1)
            (tmp_path / "dvc.lock").write_text("schema: '2.0'\nstages: {train: {cmd: 'true'}}\n")
        assert [stage.command for stage in reading.result(timeout=60).stages] == ["true"]


def test_a_preset_of_params_has_its_deployment_on_its_data_set(root, tmp_path):
    shutil.copy(root / "prefect.yaml", tmp_path)
    for preset in ("scenes/vsepp", "birds/vsepp", "birds/bag", "birds/pcme"):
        path = tmp_path / "presets" / f"{preset}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    given = yaml.safe_load((root / "params.yaml").read_text())
    given |= {"datasets": ["scenes", "birds"], "presets": ["vsepp", "bag"]}
    given["sources"]["birds"] = {"kind": "own", "images": "x"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(given))
    trained = {
        one["name"]: one["parameters"]
        for one in deployments(tmp_path)["deployments"]
        if one["name"].startswith("train-")
    }
    bag = {"preset": "bag", "dataset": "birds"}
    assert trained == {"train-vsepp": {"preset": "vsepp"}, "train-bag": bag}


def test_every_method_has_its_deployment(root):
    listed = deployments(root)["deployments"]
    named = {deployment["name"]: deployment for deployment in listed}
    presets = root / "presets" / "scenes"
    methods = [name for name in METHODS if (presets / f"{name}.yaml").is_file()]
    assert len(named) == len(listed) and len(methods) > 8
    for method in methods:
        assert named[f"train-{method}"]["parameters"] == {"preset": method}
    for name, deployment in named.items():
        # What the queue `cpu` runs beside others must see none of their GPUs.
        queue = deployment["work_pool"]["work_queue_name"]
        assert queue == (WITHOUT if name == "report" else QUEUE)
    schedules = [schedule for deployment in listed for schedule in deployment.get("schedules", ())]
    assert schedules and not any(schedule["active"] for schedule in schedules)


def test_a_server_that_does_not_answer_is_one_line():
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(ManyMatchError, match="could not be deployed: no answer") as raised,
    ):
        deploy()
    assert "\n" not in str(raised.value)


def test_what_somebody_has_scheduled_stays():
    def schedule(cron, slug=None, active=True):
        return DeploymentSchedule(
            schedule=CronSchedule(cron=cron), slug=slug, active=active, parameters={"a": cron}
        )

    class Server:
        def __init__(self):
            self.present = [schedule("0 3 * * *", "nightly", active=False), schedule("5 5 * * *")]

        def read_deployment_schedules(self, deployment):
            return self.present

        def update_deployment_schedule(self, deployment, id, *, active):
            (changed,) = [one for one in self.present if one.id == id]
            changed.active = active

        def create_deployment_schedules(self, deployment, added):
            self.present += added

    before = [
        schedule("0 2 * * *", "nightly"),  # switched on; prefect.yaml has another hour now
        schedule("5 5 * * *", active=False),
        schedule("0 0 * * 1"),
        schedule("0 0 1 * *", "monthly"),  # which prefect.yaml no longer has
    ]
    server = Server()
    keep_schedules(server, cast(Any, SimpleNamespace(id="reproduce", schedules=before)))
    schedules = [(one.schedule.cron, one.active, one.parameters["a"]) for one in server.present]
    assert schedules == [(cron, True, cron) for cron in ("0 3 * * *", "5 5 * * *", "0 0 * * 1")]
