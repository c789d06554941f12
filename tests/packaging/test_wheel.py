"""The package works from its wheel: without the checkout, in an environment of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

STAGES = ("download scenes", "captions scenes")
RUN = """
import sys
import manymatch
from manymatch.cli.commands import app
print(manymatch.__file__)
for stage in sys.argv[1:]:
    print(stage, flush=True)
    app(stage.split(), standalone_mode=False)
"""
"""Runs stages in one process, which loads the libraries once."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture
def python(root, tmp_path):
    """The Python of a new virtual environment with the wheel of this checkout.

    All other packages come from the environment of the tests, which a path file names: Python reads
    no path files there, so that the checkout's own installation is out of reach.
    """
    source = tmp_path / "source"
    generated = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(root / "src", source / "src", ignore=generated)
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(root / name, source)
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(source))
    subprocess.run([*PIP, *build], check=True)
    (wheel,) = tmp_path.glob("manymatch-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for path in (source / "src").rglob("*") if path.is_file())
    written = {str(path.relative_to(source / "src")) for path in files}
    assert packed == {name for name in written if ".egg-info/" not in name}
    venv.create(tmp_path / "environment")
    python = tmp_path / "environment" / "bin" / "python"
    install = ("install", "--no-deps", "--no-index", str(wheel))
    subprocess.run([*PIP, "--python", str(python), *install], check=True)
    (packages,) = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.mark.slow
def test_the_wheel_has_every_file_and_works_in_its_own_environment(python, root, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    settings = yaml.safe_load((root / "params.yaml").read_text())
    settings["sources"]["scenes"].update(train=8, validation=4, test=4)
    (project / "params.yaml").write_text(yaml.safe_dump(settings))
    for run in ([python.with_name("manymatch"), "version"], [python, "-c", RUN, *STAGES]):
        done = subprocess.run(run, cwd=project, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}:\n{done.stderr}"
    assert Path(done.stdout.split()[0]).is_relative_to(python.parents[1])
    assert (project / "data" / "captions" / "scenes.parquet").is_file()
