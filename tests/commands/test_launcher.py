# SPDX-License-Identifier: MIT
"""Tests the launcher and its Python environment, in a separate checkout and cache.

The Python package only echoes its arguments, and pip installs nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT

PROGRAMS = ("sh", "cat", "sed", "readlink")
"""Programs that the launcher calls; these tests have nothing else on the PATH."""
LAUNCHER_MODULES = ("environment.py", "errors.py", "paths.py", "__init__.py")
ECHO = "import sys; print(*sys.argv[1:], sep='|')\n"
PIP = """
import sys, time
from pathlib import Path

wanted = Path(sys.argv[sys.argv.index("--requirement") + 1]).read_text()
if "nothing-of-that-name" in wanted:
    sys.exit("no such library")
for library in wanted.split():
    if "==" in library:
        (Path(sys.prefix) / library).touch()
if "wait==1" in wanted:
    time.sleep(60)
"""


class Host:
    """A checkout in a folder with spaces, a cache, and the available programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "check out"
        self.cache = folder / "ca che"
        self.bin = folder / "bin"
        self.bin.mkdir()
        package = self.checkout / "python" / "schedlab"
        package.mkdir(parents=True)
        for name in LAUNCHER_MODULES:
            shutil.copy(ROOT / "python" / "schedlab" / name, package)
        (package / "__main__.py").write_text(ECHO)
        (package / "commands").mkdir()
        (package / "commands" / "help.txt").write_text("Usage: the help\n")
        self.lock = self.checkout / "python" / "requirements.lock"
        self.lock.write_text("first==1\n# [more]\nsecond==2\n")
        shutil.copy(ROOT / "python" / "start.py", self.checkout / "python")
        shutil.copy(ROOT / "schedlab", self.checkout)
        for name in PROGRAMS:
            (self.bin / name).symlink_to(shutil.which(name) or "")
        (self.bin / "python3").symlink_to(sys.executable)

    def popen(
        self,
        *arguments: str,
        cwd: Path | None = None,
        script: Path | None = None,
        **settings: str,
    ) -> subprocess.Popen[str]:
        usual = {
            "PATH": str(self.bin),
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.cache),
            "SCHEDLAB_PYTHON": "python3",
        }
        return subprocess.Popen(
            [str(script or self.checkout / "schedlab"), *arguments],
            env={**usual, **settings},
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, *arguments: str, **settings: str) -> tuple[int, str, str]:
        with self.popen(*arguments, cwd=None, script=None, **settings) as process:
            output, messages = process.communicate(timeout=120)
            return process.returncode, output, messages

    def environments(self) -> list[str]:
        folder = self.cache / "schedlab" / "python"
        names = (path.name for path in folder.iterdir()) if folder.exists() else ()
        return sorted(name for name in names if name != ".lock")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Environment as the real venv module makes it, with a pip that installs nothing."""
    path = tmp_path_factory.mktemp("template") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    (libraries,) = path.glob("lib/python*/site-packages")
    (libraries / "pip").mkdir()
    (libraries / "pip" / "__main__.py").write_text(PIP)
    return path


@pytest.fixture
def host(tmp_path: Path, template: Path) -> Host:
    """Host whose venv module copies an existing environment, which saves time."""
    host = Host(tmp_path)
    text = (host.checkout / "python" / "schedlab" / "environment.py").read_text()
    made = f'[shutil.which("cp", path={os.environ["PATH"]!r}), "-a", {str(template)!r}, str(new_folder)]'
    real = '[sys.executable, "-I", "-m", "venv", str(new_folder)]'
    assert real in text
    (host.checkout / "python" / "schedlab" / "environment.py").write_text(text.replace(real, made))
    return host


def test_help_and_version_need_nothing(host: Host) -> None:
    (host.bin / "python3").unlink()
    assert host.start("--help") == (0, "Usage: the help\n", "")
    assert host.start() == (0, "Usage: the help\n", "")
    status, output, _ = host.start("--version")
    assert (status, output.startswith("schedlab, version ")) == (0, True)
    assert not host.cache.exists()


def test_starts_from_anywhere_with_arguments_as_they_are(host: Host) -> None:
    link = host.folder / "a link"
    link.symlink_to(host.checkout / "schedlab")
    with host.popen("run", "a b", "", "*", script=link, cwd=Path("/")) as process:
        assert process.communicate(timeout=120)[0] == "run|a b||*\n"
    (name,) = host.environments()
    path = host.cache / "schedlab" / "python" / name
    assert (path / "first==1").exists()
    assert not (path / "second==2").exists()
    assert host.start("doctor") == (0, "doctor\n", "")  # and prints nothing the second time
    (path / "bin" / "python").unlink()
    assert host.start("doctor")[:2] == (0, "doctor\n")  # the system's Python was replaced
    host.lock.write_text("other==1\n")
    assert host.start("doctor")[:2] == (0, "doctor\n")
    assert len(host.environments()) == 2


def test_a_failed_installation_leaves_nothing(host: Host) -> None:
    host.lock.write_text("nothing-of-that-name==0\n")
    status, output, messages = host.start("doctor")
    assert (status, output) == (2, "")
    assert "no such library" in messages
    assert "Nothing was changed" in messages
    assert host.environments() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_start_that_is_ended_leaves_nothing(host: Host, number: signal.Signals) -> None:
    host.lock.write_text("wait==1\n")
    with host.popen("doctor") as process:
        wait_for(host.cache / "schedlab" / "python", "*.new.*/wait==1")
        os.killpg(process.pid, number)
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in messages
    assert host.environments() == []


def test_first_starts_side_by_side_make_one_environment(host: Host) -> None:
    processes = [host.popen("doctor", str(number)) for number in range(4)]
    ends = [process.communicate(timeout=120) for process in processes]
    assert [output for output, _ in ends] == [f"doctor|{number}\n" for number in range(4)]
    assert sum("fetching the Python environment" in messages for _, messages in ends) == 1
    assert len(host.environments()) == 1


def test_partial_environment_is_rebuilt(host: Host) -> None:
    assert host.start("doctor")[0] == 0
    (name,) = host.environments()
    path = host.cache / "schedlab" / "python"
    (path / name / "base.complete").unlink()
    (path / f"{name}.new.1").mkdir()
    assert host.start("doctor")[:2] == (0, "doctor\n")
    assert host.environments() == [name]


def test_a_completion_installs_nothing(host: Host) -> None:
    assert host.start("ru", _SCHEDLAB_COMPLETE="bash_complete") == (0, "", "")
    assert host.environments() == []


def test_a_shared_cache_is_used_and_not_written_to(host: Host) -> None:
    assert host.start("doctor")[0] == 0
    mine = host.folder / "mine"
    settings = {"XDG_CACHE_HOME": str(mine), "SCHEDLAB_SHARED_CACHE": str(host.cache)}
    assert host.start("doctor", **settings) == (0, "doctor\n", "")
    assert not mine.exists()
    host.lock.write_text("other==1\n")  # lock file of another release
    assert host.start("doctor", **settings)[:2] == (0, "doctor\n")
    assert len(host.environments()) == 1
    for place in ("/gone", "relative"):
        status, output, messages = host.start("doctor", SCHEDLAB_SHARED_CACHE=place)
        assert (status, output) == (0, "doctor\n")
        assert f"SCHEDLAB_SHARED_CACHE is '{place}'" in messages


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"SCHEDLAB_PYTHON": "old-python"}, "SCHEDLAB_PYTHON"),
        ({"HOME": "", "XDG_CACHE_HOME": ""}, "HOME and XDG_CACHE_HOME: neither"),
        ({"HOME": "/gone", "XDG_CACHE_HOME": "relative"}, "'/gone' is not a folder"),
        ({"XDG_CACHE_HOME": "/proc/none"}, "/proc/none"),
        ({"XDG_CACHE_HOME": "/dev/null/cache"}, "/dev/null/cache"),
        ({"XDG_CACHE_HOME": "/tmp/a:b"}, "colon"),
        ({"XDG_CACHE_HOME": "@CHECKOUT@"}, "among the files of this checkout"),
    ],
)
def test_cache_folder_is_not_writable(host: Host, settings: dict[str, str], message: str) -> None:
    (host.bin / "old-python").symlink_to("/bin/false")
    given = {
        name: value.replace("@CHECKOUT@", str(host.checkout)) for name, value in settings.items()
    }
    status, output, messages = host.start("doctor", **given)
    assert (status, output) == (2, "")
    assert message in messages
    assert "Traceback" not in messages


def test_a_home_with_spaces_below_tmp_and_files_for_its_user_alone(host: Host) -> None:
    home = host.folder / "ho me"
    home.mkdir()
    before = os.umask(0o077)
    try:
        assert host.start("doctor", HOME=str(home), XDG_CACHE_HOME="")[0] == 0
    finally:
        os.umask(before)
    (made,) = (home / ".cache/schedlab/python").glob("*-3.*")
    assert made.parent.stat().st_mode & 0o077 == 0
    assert host.start("doctor", HOME=str(home), XDG_CACHE_HOME="")[:2] == (0, "doctor\n")


def wait_for(folder: Path, pattern: str) -> None:
    for _ in range(600):
        if list(folder.glob(pattern)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{folder}/{pattern} did not appear")
