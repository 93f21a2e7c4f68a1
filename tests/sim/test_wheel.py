# SPDX-License-Identifier: MIT
"""The binding as a wheel: built without the network, used without this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import cffi
import numpy
import pytest

from schedlab.paths import ROOT

SCRIPT = """
import sys
from pathlib import Path
import schedlab_simulator
from schedlab_simulator import Simulator
assert Path(schedlab_simulator.__file__).is_relative_to(sys.prefix), schedlab_simulator.__file__
with Simulator("program a\\n run 3ms\\n", costs="none", policy="mlfq") as machine:
    machine.run()
    print(machine.now)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; nothing of this checkout is on Python's path."""
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"),
        *("--wheel-dir", folder, ROOT / "sim" / "python"),
        cwd=folder,
    )
    (found,) = folder.glob("*.whl")
    return found


def test_it_is_for_all_pythons_of_this_platform(wheel: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_")
    assert wheel.name == f"schedlab_simulator-0.2.0-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (tags,) = (archive.read(name) for name in names if name.endswith("/WHEEL"))
    assert b"Root-Is-Purelib: false" in tags
    assert "schedlab_simulator/libschedlab-sim.so" in names
    assert "schedlab_simulator/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_it_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """With no more than the two libraries that it names."""
    place = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=tmp_path)
    python = place / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel),
        cwd=tmp_path,
    )
    packages = {Path(module.__file__ or "").parent.parent for module in (cffi, numpy)}
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))",
                   cwd=tmp_path).strip())  # fmt: skip
    for pattern in ("numpy*", "cffi*", "_cffi_backend*", "pycparser*"):
        found = [path for folder in packages for path in folder.glob(pattern)]
        assert found
        for path in found:
            (own / path.name).symlink_to(path)
    assert run(python, "-c", SCRIPT, cwd=tmp_path) == "3000000\n"


def test_a_source_distribution_is_refused(tmp_path: Path) -> None:
    """It would lack the C sources, and fail only where it is used."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path],
        cwd=ROOT / "sim" / "python",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Build a wheel: pip wheel ./sim/python" in done.stderr
    assert not list(tmp_path.iterdir())
