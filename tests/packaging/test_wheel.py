"""The package works from its wheel: without the checkout, in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml

STAGES = (
    "download scenes",
    "captions scenes",
    "features scenes lite0",
    "scene-graphs scenes",
    "shards scenes lite0",
    "train scenes vsepp --set training.epochs=1",
    "evaluate scenes vsepp",
    "report",
)
RUN = """
import sys
from manymatch.cli.commands import app
for stage in sys.argv[1:]:
    print(stage, flush=True)
    app(stage.split(), standalone_mode=False)
"""
"""Runs stages in one process, which loads the libraries once."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def command(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`manymatch` in a new virtual environment with the wheel of this checkout.

    All other packages come from the environment of the tests, which a path file names: Python reads
    no path files there, so that the checkout's own installation is out of reach.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    generated = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(root / "src", source / "src", ignore=generated)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(root / name, source)
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source))
    subprocess.run([*PIP, *build], check=True)
    (wheel,) = folder.glob("manymatch-*.whl")
    venv.create(folder / "environment")
    python = folder / "environment" / "bin" / "python"
    install = ("install", "--no-deps", "--no-index", str(wheel))
    subprocess.run([*PIP, "--python", str(python), *install], check=True)
    (packages,) = (folder / "environment" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.with_name("manymatch")


@pytest.mark.slow
def test_the_wheel_is_imported_from_its_own_environment(command: Path) -> None:
    code = "import manymatch; print(manymatch.__file__)"
    shown = subprocess.run(
        [command.with_name("python"), "-c", code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(shown.stdout.strip()).is_relative_to(command.parents[1])


@pytest.mark.slow
def test_every_stage_works_from_the_wheel(command: Path, root: Path, tmp_path: Path) -> None:
    settings = yaml.safe_load((root / "params.yaml").read_text())
    settings["sources"]["scenes"].update(train=24, validation=8, test=8)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    shutil.copytree(root / "presets" / "scenes", tmp_path / "presets" / "scenes")
    (tmp_path / "reports").mkdir()
    for run in ([command, "version"], [command.with_name("python"), "-c", RUN, *STAGES]):
        done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}:\n{done.stderr}"
    assert "vsepp" in (tmp_path / "reports" / "index.html").read_text()
