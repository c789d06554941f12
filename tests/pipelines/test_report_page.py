"""The page of the reports answers this machine alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pipelines.report_page import server


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "index.html").write_text("results")
    served = server(0, str(tmp_path))
    threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


def test_only_a_name_of_this_machine_is_answered(address: str) -> None:
    for name in ("127.0.0.1", "127.0.0.1:80", "localhost:4201"):
        answer = httpx.get(f"http://{address}/index.html", headers={"Host": name})
        assert answer.text == "results"
        assert "access-control-allow-origin" not in answer.headers
    for name in ("evil.example", "evil.example:4201", "127.0.0.1.evil", "", "a:b"):
        for method, path in (("GET", "index.html"), ("GET", ""), ("HEAD", "index.html")):
            answer = httpx.request(method, f"http://{address}/{path}", headers={"Host": name})
            assert answer.status_code == 421 and "results" not in answer.text
