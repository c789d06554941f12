"""A running service takes over an index that is replaced, and answers all the time."""

import gc
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event, Semaphore

import httpx
import psutil
import pytest
import warm_commands
from made_indexes import made_index
from s3_server import s3_bucket
from starlette.testclient import TestClient
from waiting import ready

import manymatch
from manymatch.search.service import served_index
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex


@pytest.fixture
def photos(pictures, make_model, tmp_path):
    """A folder of pictures, beside its index `photos.index`."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in pictures:
        shutil.copy(path, folder)
    made_index(folder, make_model("vsepp"), tmp_path / "photos.index")
    return folder


@pytest.fixture
def client(photos):
    served = ServedIndex.from_folder(photos.with_suffix(".index"))
    with TestClient(application([served], rate=1e6), "http://127.0.0.1:8000") as client:
        ready(client)
        yield client


def found(client):
    answer = client.get("/search", params={"q": "two dogs", "k": 100})
    assert answer.status_code == 200, answer.text
    return {result["path"] for result in answer.json()["results"]}


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_clients_see_no_error_while_the_index_changes(photos, client, make_model):
    """100 updates, at each of which 16 clients ask, spread over a sixth of a second."""
    model, kept, process = make_model("vsepp"), photos / "0.png", psutil.Process()
    before, asked, done, bytes_used = indexes_in_memory(), Semaphore(0), Event(), []

    def search(number):
        answers = 0
        while asked.acquire() and not done.is_set():
            time.sleep(number / 100)
            assert {"1.png", "2.png"} <= found(client)
            answers += 1
        return answers

    with ThreadPoolExecutor(16) as pool:
        searches = [pool.submit(search, number) for number in range(16)]
        try:
            for update in range(100):
                asked.release(16)
                if update % 2:
                    shutil.copy(photos / "1.png", kept)
                else:
                    kept.unlink()
                made_index(photos, model, photos.with_suffix(".index"))
                state = client.post("/reload").json()
                assert state["status"] == "ready"
                assert state["indexes"][0]["items"] == len(names(photos))
                assert found(client) == names(photos)
                bytes_used.append(process.memory_info().rss)
        finally:
            done.set()
            asked.release(16)
        assert sum(one.result() for one in searches) > 1000
    assert 0 < indexes_in_memory() < before + 3  # a thread may hold the former index for a batch
    # The heap of a process with other tests grows in steps of tens of megabytes.
    assert max(bytes_used[-20:]) < max(bytes_used[10:30]) + 100e6


def indexes_in_memory():
    gc.collect()
    return sum(type(one) is manymatch.Index for one in gc.get_objects())


def test_an_index_that_cannot_be_used_changes_nothing(photos, client, make_model, capsys):
    index = photos.with_suffix(".index")
    shutil.move(index, photos.with_suffix(".aside"))
    elsewhere = {"origin": "http://evil.example"}
    assert client.post("/reload", headers=elsewhere).status_code == 403
    for _ in range(2):
        assert client.post("/reload").json()["status"] == "ready"
    shutil.copytree(photos.with_suffix(".aside"), index)
    (index / "SEAL.json").write_text("{}")
    assert client.post("/reload").json()["status"] == "ready"
    assert found(client) == names(photos)
    said = capsys.readouterr().err.splitlines()
    assert sum("goes on as it was" in line for line in said) == 2
    shutil.rmtree(index)
    made_index(photos, make_model("maxmatch"), index)
    assert client.post("/reload").json()["indexes"][0]["method"] == "maxmatch"
    assert found(client) == names(photos)


def test_the_folder_is_watched(photos, make_model, monkeypatch):
    monkeypatch.setattr(served_index, "_BETWEEN_LOOKS", 0.05)
    served = ServedIndex.from_folder(photos.with_suffix(".index"))
    with TestClient(application([served], rate=1e6), "http://127.0.0.1:8000") as client:
        ready(client)
        (photos / "0.png").unlink()
        made_index(photos, make_model("vsepp"), photos.with_suffix(".index"))
        while "0.png" in found(client):
            time.sleep(0.05)
        assert found(client) == names(photos)


@pytest.mark.slow
def test_the_command_follows_its_folder_until_it_is_interrupted(photos, make_model):
    index = photos.with_suffix(".index")
    command = ["index", str(photos), "--model", str(make_model("vsepp")), "--to", str(index)]
    with subprocess.Popen(
        [warm_commands.folder() / "manymatch", *command, "--watch"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        said = (line for line in process.stderr if " items, " in line)
        assert "5 items" in next(said)
        (photos / "0.png").unlink()
        assert "4 items, 1 removed" in next(said)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130 and "Traceback" not in rest
    assert len(manymatch.Index.open(index)) == 4


@pytest.mark.slow
def test_services_follow_one_table_though_one_of_them_is_killed(photos, make_model, monkeypatch):
    """Each answer is that of the table before the update or after it."""
    model, before, done = make_model("vsepp"), names(photos), Event()
    with ExitStack() as stack:
        place = f"{stack.enter_context(s3_bucket(monkeypatch))}/photos"
        options = {"engine": "lance", "url": place}
        made_index(photos, model, photos.parent / "work", **options)
        services = [stack.enter_context(service(place)) for _ in range(2)]
        clients = [
            stack.enter_context(httpx.Client(base_url=address, timeout=60))
            for _, address in services
        ]
        while not all(one.get("/health").json()["status"] == "ready" for one in clients):
            time.sleep(0.1)

        def ask(client):
            seen = []
            while not done.is_set():
                try:
                    answer = client.get("/search", params={"q": "two dogs", "k": 100})
                except httpx.TransportError:  # the service was killed
                    break
                assert answer.json()["exact"]
                seen.append({result["path"] for result in answer.json()["results"]})
            return seen

        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask, client) for client in clients]
            try:
                (photos / "0.png").rename(photos / "new.png")
                (photos / "1.png").unlink()
                services[0][0].kill()
                made_index(photos, model, photos.parent / "work", **options)
                assert clients[1].post("/reload").json()["indexes"][0]["items"] == len(before) - 1
                time.sleep(0.5)
            finally:
                done.set()
            seen = [answers for one in asking for answers in one.result()]
        assert {frozenset(answer) for answer in seen} == {
            frozenset(before),
            frozenset(names(photos)),
        }
        assert asking[1].result()[-1] == names(photos)


@contextmanager
def service(place):
    """A process of the command, and its address."""
    command = [warm_commands.folder() / "manymatch", "serve", place, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        (address,) = re.findall(r"http://\S+", process.stderr.readline())
        yield process, address
        process.kill()
