"""The service as a person uses it, and what it does when something dies. A real server and worker.

The tests run in this order on one service, each with runs of its own.
"""

import json
import re

import httpx
import psutil
import pytest
from chromium import CHROMIUM
from service import PATIENCE, run_id

pytestmark = pytest.mark.slow

DATA = [
    "code",
    "download@scenes",
    "captions@scenes",
    "features@scenes-lite0",
    "scene_graphs@scenes",
]
CORA = [*DATA, "shards@scenes-lite0", "train@scenes-cora", "evaluate@scenes-cora"]


def test_train_cora_as_typed(service):
    # With a stage that never runs here, `dvc exp apply` would end with an error.
    service.edit("params.yaml", {"presets": ["cora"]})
    output = service.run("prefect", "deployment", "run", "train-cora", "--watch")
    for text in ("train-cora scenes/cora 1", "7/8 train@scenes-cora", "epoch 2/2: loss", "rsum"):
        assert text in output
    assert "finished successfully" in output and "lock file" not in output
    run = run_id(output)
    assert set(service.stages(run).values()) == {"Completed"}
    assert sorted(service.stages(run)) == sorted(CORA)
    assert list(service.stages(run))[-3:] == CORA[-3:]
    assert (service.folder / "models" / "scenes" / "cora" / "model.safetensors").is_file()
    metrics = service.folder / "reports" / "results" / "scenes" / "cora.json"
    assert json.loads(metrics.read_text())["rsum"] > 0
    log = service.log(run)
    assert "> manymatch train scenes cora" in log and "epoch 2/2: loss" in log
    artifacts = service.artifacts(run)
    assert "| cora | small-scale |" in artifacts["metrics-scenes-cora"]
    assert "| validation/rsum |" in artifacts["metrics-scenes-cora"]
    assert artifacts["epochs-train-scenes-cora"] == 100
    assert "rsum" in artifacts["metrics-diff"]
    (link,) = re.findall(r"http:[^\s)]+", artifacts["report"])
    assert "cora" in httpx.get(link).raise_for_status().text
    service.commit("Results")


def test_unchanged_stages_are_cached_and_the_report_is_linked(service):
    assert service.run("git", "status", "--porcelain") == ""
    runs = [service.begin("train/train-cora"), service.begin("report/report")]
    cached, made = (service.ended(run) for run in runs)
    assert cached["message"] == "0 stages ran, 8 had not changed"
    assert [service.name(run) for run in runs] == ["train-cora scenes/cora 2", "report 1"]
    assert "no stage had to run" in service.log(runs[0])
    assert service.artifacts(runs[0])["metrics-diff"].startswith("No metric differs")
    assert set(service.stages(runs[0]).values()) == {"Cached"}
    assert made["type"] == "COMPLETED" and service.stages(runs[1]) == {
        "code": "Cached",
        "report": "Completed",
    }
    assert f"http://127.0.0.1:{service.port + 1}/index.html" in service.artifacts(runs[1])["report"]


def test_a_page_of_another_origin_runs_nothing(service):
    """A page can send these requests from a browser on this machine."""
    foreign = {"Origin": "http://evil.example"}
    asks = {"Access-Control-Request-Method": "POST"}
    asks |= {"Access-Control-Request-Headers": "content-type"}
    made = service.folder / "made"
    route = f"deployments/{service.deployed('train/train-cora')['id']}/create_flow_run"
    count = service.call("POST", "flow_runs/count")
    for path in ("deployments/filter", route):
        preflight = service.ask("OPTIONS", path, headers=foreign | asks)
        assert preflight.status_code == 400
        assert "access-control-allow-origin" not in preflight.headers
    own = service.ask("OPTIONS", route, headers={**asks, "Origin": service.page})
    assert own.headers["access-control-allow-origin"] == service.page
    token = service.token()
    for variables in ({"command": f"touch {made}"}, {"env": {"PATH": "/"}}, {"working_dir": "/"}):
        content = {"job_variables": variables, "state": {"type": "SCHEDULED"}}
        for password, headers, status in (
            (None, foreign, 403),
            (None, foreign | token, 401),
            (("manymatch", "guessed"), foreign | token, 401),
            (service.password, foreign, 403),
            (service.password, foreign | token, 422),
            (service.password, token, 422),
        ):
            answer = service.ask("POST", route, content, password, headers)
            assert answer.status_code == status, answer.text
            assert "access-control-allow-origin" not in answer.headers
    assert service.call("POST", "flow_runs/count") == count and not made.exists()


def test_a_name_that_leads_here_needs_the_password_too(service):
    """A page at evil.example, which then leads to 127.0.0.1, is of one origin with the server."""
    rebound = {
        "Host": f"evil.example:{service.port}",
        "Origin": f"http://evil.example:{service.port}",
    }
    for method, route in (
        ("GET", "csrf-token?client=a"),
        ("GET", "admin/version"),
        ("POST", "deployments/filter"),
        ("POST", "logs/filter"),
    ):
        assert service.ask(method, route, headers=rebound | service.token()).status_code == 401


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
def test_the_page_takes_the_password_and_asks_no_other_host(service):
    playwright = pytest.importorskip("playwright.sync_api")
    asked = []
    with playwright.sync_playwright() as opened:
        browser = opened.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(service.page)
        page.fill("input[type=password]", ":".join(service.password))
        with page.expect_response("**/api/flow_runs/**") as answer:
            page.keyboard.press("Enter")
        assert answer.value.ok and "login" not in page.url
        browser.close()
    web = [url for url in asked if url.startswith("http")]
    assert len(web) > 10 and all(url.startswith(f"{service.page}/") for url in web)


def test_a_wrong_parameter_ends_the_run_before_anything_is_written(service, alerts):
    before = service.run("git", "status", "--porcelain")
    wrong = {"overrides": "trainig.epochs=2"}
    run = service.begin("train/train-cora", parameters=wrong)
    state = service.ended(run)
    assert state["type"] == "FAILED" and "\n" not in state["message"]
    assert "did you mean 'training'?" in state["message"] and service.stages(run) == {}
    assert service.run("git", "status", "--porcelain") == before
    alert = alerts.get(timeout=PATIENCE)
    while alert["run"] != service.name(run):
        alert = alerts.get(timeout=PATIENCE)
    assert alert["state"] == "Failed" and "did you mean 'training'?" in alert["reason"]
    assert alert["text"].startswith(f"ManyMatch: {alert['run']}: Failed. ")


def test_runs_with_overrides_are_experiments_side_by_side(service):
    before = service.run("git", "status", "--porcelain")
    parameters = [{"overrides": [f"seed={seed}"]} for seed in (1, 2)]
    runs = [
        service.begin("train/train-cora", parameters=given, work_queue_name=queue, name=name)
        for given, queue, name in zip(parameters, ("gpu", "cpu"), ("one", "two"), strict=True)
    ]
    assert {service.ended(run)["type"] for run in runs} == {"COMPLETED"}
    assert "presets/scenes/cora.yaml: seed is 2" in service.log(runs[1])
    assert service.run("git", "status", "--porcelain") == before
    assert len(service.run("git", "worktree", "list").splitlines()) == 1
    shown = service.run("dvc", "exp", "show", "--json")
    assert '"one"' in shown and '"two"' in shown
    for run, name in zip(runs, ("one", "two"), strict=True):
        link = service.artifacts(run)["report"]
        assert f"/service/experiments/{name}/index.html" in link
    assert len({service.artifacts(run)["metrics-scenes-cora"] for run in runs}) == 2
    service.run("dvc", "exp", "apply", "two")
    service.run("git", "checkout", ".")
    service.run("dvc", "checkout", "--force", "--allow-missing")


def test_a_power_cut_ends_a_run_at_the_next_start(service):
    service.edit("presets/scenes/cora.yaml", {"training.epochs": 2000})
    run = service.begin("train/train-cora")
    message = service.says(run, "epoch 3/2000")
    assert "presets/scenes/cora.yaml differs from the last commit" in message
    everything = service.processes()
    for process in everything:
        process.kill()
    psutil.wait_procs(everything)
    assert service.stored_state(run) == "RUNNING"
    assert "no process works on them" in service.serve()
    state = service.state(run)
    assert state["type"] == "CRASHED" and "start the same run again" in state["message"]


def test_runs_queue_cancel_and_survive_a_new_server_but_not_their_worker(service):
    first = service.begin("train/train-cora")
    service.says(first, "resuming after epoch")
    service.says(first, "/2000: loss")
    with service.paused("manymatch", "train") as stages:
        # Another queue, so that both run at once and meet at DVC's lock.
        second = service.begin("train/train-cora", work_queue_name="cpu")
        third = service.begin("train/train-cora")
        service.says(second, "train@scenes-cora waits for the end")
        assert service.state(third)["type"] == "SCHEDULED"
        service.cancel(third)

    service.cancel(first)
    _, alive = psutil.wait_procs(stages, timeout=PATIENCE)
    assert stages and not alive
    service.says(second, "resuming after epoch")
    assert service.ended(first)["type"] == "CANCELLED"
    service.says(first, "interrupted; finished work is kept")
    service.says(first, "Start the same run again")

    with service.paused("manymatch", "train"):
        (server,) = service.processes("prefect", "server", "start")
        server.kill()
        service.serve()
    assert [service.state(run)["type"] for run in (first, third)] == ["CANCELLED", "CANCELLED"]
    begun = len(service.log(second))
    service.says(second, "/2000: loss", after=begun)

    assert "ended: worker, reports, server" in service.stop()
    assert service.stored_state(second) == "CRASHED"
    assert service.processes("prefect") == service.processes("pipelines.report_page") == []
    assert service.processes("prefect.engine") == service.processes("manymatch") == []
