# SPDX-License-Identifier: MIT
"""Tests the package as a wheel: built without the network; used without this checkout, a
compiler and git.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from schedlab import __version__
from schedlab.paths import ROOT

BINDING = """
from schedlab_simulator import Simulator
with Simulator("program a\\n run 3ms\\n", costs="none", policy="mlfq") as machine:
    machine.run()
    print(machine.now)
"""
API = """
import schedlab
print(len(schedlab.run("mixed", ["rr", "mlfq"])))
"""
pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    started(*command, "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel_path,) = folder.glob("*.whl")
    return wheel_path


@pytest.fixture(scope="module")
def path(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an environment with the wheel, which shares only the libraries of this
    environment.
    """
    folder = tmp_path_factory.mktemp("environment")
    started(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    started(*pip, "install", "--no-deps", wheel, cwd=folder)
    (libraries,) = folder.glob("lib/python*/site-packages")
    (libraries / "libraries.pth").write_text("\n".join(site.getsitepackages()))
    return folder


def started(*command: str | Path, cwd: Path, status: int = 0) -> str:
    """Returns a command's output; Python's path contains nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    result = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def schedlab(path: Path, *arguments: str, cwd: Path, status: int = 0) -> str:
    """Returns the output of the installed command, with an empty PATH."""
    command: tuple[str | Path, ...] = (
        "env",
        "-i",
        f"HOME={cwd}",
        f"PATH={cwd}",
        path / "bin" / "schedlab",
        *arguments,
    )
    return started(*command, cwd=cwd, status=status)


def test_it_is_for_all_pythons_of_this_platform(wheel: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_")
    assert wheel.name == f"schedlab-{__version__}-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (tags,) = (archive.read(name) for name in names if name.endswith("/WHEEL"))
    assert b"Root-Is-Purelib: false" in tags
    assert "schedlab_simulator/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_simulator_works_without_a_compiler(path: Path, tmp_path: Path) -> None:
    output = schedlab(
        path, "run", "--machine", "sim", "--policy", "rr,mlfq", "--cpus", "1", cwd=tmp_path
    )
    (folder,) = (tmp_path / "runs").iterdir()
    run = str(folder / "rr-1cpu-seed1")
    assert f"Kept in {folder}" in output
    assert "schedlab monitor" in output
    assert "./schedlab" not in output
    for words in (
        ("policies",),
        ("workloads",),
        ("doctor", "--json"),
        ("explain", run),
        ("replay", run, "--policy", "lottery", "--out", "replayed"),
        ("compare", run, str(folder / "mlfq-1cpu-seed1")),
        ("report", str(folder), "--out", "report"),
        ("runs", "ls"),
        ("demo", "--help"),
    ):
        assert schedlab(path, *words, cwd=tmp_path), words
    options = ("--workload", "mixed", "--policy", "rr", "--set", "slice=1,2", "--machine", "sim")
    schedlab(path, "sweep", *options, "--out", "swept", cwd=tmp_path)
    assert (tmp_path / "swept").exists()
    assert (tmp_path / "report" / "index.html").exists()


def test_checkout_commands_explain_themselves(path: Path, tmp_path: Path) -> None:
    for words in (
        ("run", "--machine", "spike", "--policy", "rr"),
        ("check", "rr"),
        ("test",),
    ):
        assert "checkout" in schedlab(path, *words, cwd=tmp_path, status=2), words


def test_python_programs_use_it(path: Path, tmp_path: Path) -> None:
    python = path / "bin" / "python"
    assert started(python, "-c", BINDING, cwd=tmp_path) == "3000000\n"
    assert started(python, "-c", API, cwd=tmp_path).splitlines()[-1] == "2"
