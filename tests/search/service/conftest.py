"""Small indexes, some with hostile names and captions, and the application that serves them."""

import shutil
import socket
import threading
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uvicorn
from chromium import started
from made_explored import DATASET, make_explored
from made_indexes import made_index
from starlette.testclient import TestClient
from waiting import ready

from manymatch.search.explore.explorer import Explorer
from manymatch.search.service.app import application
from manymatch.search.service.guard import Connection
from manymatch.search.service.served_index import ServedIndex

HOSTILE = "<img src=x onerror=alert(1)>.png"
SCRIPT = "<script>document.title = 'owned'</script>"
PRECISION = {query: [[-1.0, 1.0], [0.25, 0.75]] for query in ("text", "image")}
"""Scores, and the shares of right results at them."""
ADDRESS = "http://127.0.0.1:8000"


@contextmanager
def serving(app):
    """The port of a real server of the application."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=Connection, ws="none", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def photos(pictures, tmp_path_factory):
    """A folder of pictures, one of them with a hostile name."""
    folder = tmp_path_factory.mktemp("photos")
    for path in pictures:
        shutil.copy(path, folder)
    (folder / pictures[0].name).rename(folder / HOSTILE)
    return folder


@pytest.fixture(scope="session")
def indexes(make_model, photos, tmp_path_factory):
    """Indexes by two methods of the same pictures, and an index of captions."""
    folder = tmp_path_factory.mktemp("indexes")
    table = folder / "facts.parquet"
    paths = sorted(path.name for path in photos.iterdir())
    captions = [[SCRIPT, f"caption {number}"] for number in range(len(paths))]
    pq.write_table(pa.table({"path": paths, "captions": captions}), table)
    texts = folder / "captions.txt"
    texts.write_text(f"a red bird\ntwo dogs\n{SCRIPT}\n")
    made = []
    for method, name, source, facts in (
        ("maxmatch", "photos", photos, table),
        ("cora", "graphs", photos, table),
        ("maxmatch", "captions", texts, None),
    ):
        of = {"images": 500, "right": "own"}
        model = make_model(method, precision=PRECISION, precision_of=of)
        made.append(made_index(source, model, folder / f"{name}.index", facts).folder)
    return made


@pytest.fixture(scope="session")
def client(indexes):
    """A client of the application, whose indexes are ready."""
    app = application([ServedIndex.from_folder(folder) for folder in indexes], rate=1e6)
    with TestClient(app, ADDRESS, raise_server_exceptions=False) as client:
        ready(client)
        yield client


@pytest.fixture(scope="session")
def items(client):
    """The ids of all pictures by their paths."""
    results = client.get("/search?q=dogs").json()["results"]
    return {result["path"]: result["id"] for result in results}


@pytest.fixture(scope="session")
def layout(pictures, make_model, tmp_path_factory):
    """A project with results of two methods; `sets` has a trained model."""
    layout = make_explored(tmp_path_factory.mktemp("explored"), pictures)
    shutil.copytree(make_model("maxmatch"), layout.model(DATASET, "sets"))
    return layout


@pytest.fixture
def explored(layout, tmp_path):
    """A client of the explorer, whose judgments are gone after the test."""
    app = application([], rate=1e6, explorer=Explorer(layout, DATASET))
    with TestClient(app, ADDRESS, raise_server_exceptions=False) as client:
        yield client
    shutil.rmtree(layout.votes(DATASET).parent, ignore_errors=True)


@pytest.fixture(scope="module")  # its event loop is in the way of those of other tests
def browser():
    with started() as driven:
        yield driven


def assert_refused(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    assert "\n" not in answer.json()["error"] and "Traceback" not in answer.text
