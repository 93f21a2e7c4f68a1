# SPDX-License-Identifier: MIT
"""The launcher, in a checkout and a cache of its own, with a Python package that only echoes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from conftest import ROOT

# What the launcher and venv call. Everything else is not on the PATH of these tests.
HOST_PROGRAMS = (
    *("sh", "dash", "cat", "sha256sum", "readlink", "dirname", "mkdir", "rm", "mv", "ln"),
    *("flock", "grep", "env", "sed", "sleep", "touch", "id", "true"),
)
COMPILER = ("clang-19", "ld.lld-19", "llvm-nm-19")
PACKAGES = {
    "make": "make",
    "dtc": "device-tree-compiler",
    "qemu-system-riscv64": "qemu-system-misc",
    "qemu-system-x86_64": "qemu-system-x86",
    "zstd": "zstd",
    "bwrap": "bubblewrap",
    "chromium-headless-shell": "chromium-headless-shell",
    "perf": "linux-perf",
    "trace-cmd": "trace-cmd",
}
"""The package of each program that some commands need."""

pytestmark = pytest.mark.skipif(not shutil.which("dash"), reason="no dash")


class Host:
    """A checkout in a folder with spaces, a cache, and the programs that are said to be there."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.folder = folder
        self.checkout = folder / "a: check out"
        self.cache = folder / "ca che"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.settings: dict[str, str] = {}
        package = self.checkout / "python" / "schedlab"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text("import sys; print(*sys.argv[1:], sep='|')\n")
        for name in ("requirements", "requirements-mcp", "requirements-test"):
            (self.checkout / "python" / f"{name}.lock").write_text("# nothing\n")
        shutil.copy(ROOT / "schedlab", self.checkout / "schedlab")
        shutil.copy(ROOT / "python" / "start.py", self.checkout / "python" / "start.py")
        (self.checkout / "page").mkdir()
        self.keep_page("a1")
        for name in HOST_PROGRAMS:
            path = shutil.which(name)
            if path:
                (self.bin / name).symlink_to(path)
        self.add("python3", python_with(template))
        self.add_processor("x86_64")
        self.calls = folder / "apt-calls"

    def add(self, name: str, body: str = "exit 0") -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def keep_page(self, made_of: str) -> None:
        """Of these C sources; what is in the checkout is called a1."""
        page = self.checkout / "page"
        page.joinpath("schedlab.html").write_text(
            f'<head>\n<meta name="module" content="{made_of}">\n<style>\n'
        )
        page.joinpath("sources.sh").write_text("echo a1\n")

    def add_processor(self, name: str) -> None:
        self.add("uname", f'case "$*" in -s) echo Linux ;; *) echo {name} ;; esac')

    def add_needed(self, *without: str) -> None:
        for name in {*COMPILER, *PACKAGES} - {*without}:
            self.add(name)

    def add_apt(self, installs: str = "", names: str = "clang-19") -> None:
        """An apt-get that notes its arguments, and a dpkg that must not be called."""
        installing = "".join(f'ln -sf sh "{self.bin}/{name}"\n' for name in installs.split())
        self.add(
            "apt-get",
            'case "$*" in *--print-uris*) echo "\'http://x\' x.deb 1500000 SHA256:0"; exit ;; esac\n'
            f'echo "$*" >>"{self.calls}"\ncase "$*" in *install*)\n{installing};; esac',
        )
        known = " | ".join(names.split())
        self.add("apt-cache", f'case $2 in {known}) echo "Package: $2" ;; *) exit 100 ;; esac')
        self.add("dpkg", f'echo "dpkg $*" >>"{self.calls}"')

    def installed(self) -> set[str]:
        """The packages that apt-get was told to install."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        asked = (line.partition("--no-install-recommends ")[2] for line in lines)
        return {name for names in asked for name in names.split()}

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.cache),
            "SCHEDLAB_PYTHON": "python3",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.settings,
        }

    def popen(
        self, *arguments: str, script: Path | None = None, cwd: Path | None = None, **extra: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.bin / "dash"), str(script or self.checkout / "schedlab"), *arguments],
            env={**self.environment, **extra},
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(
        self, *arguments: str, script: Path | None = None, cwd: Path | None = None, **extra: str
    ) -> tuple[int, str, str]:
        with self.popen(*arguments, script=script, cwd=cwd, **extra) as process:
            output, messages = process.communicate(timeout=120)
            return process.returncode, output, messages

    def refusal(self, *arguments: str, script: Path | None = None, **extra: str) -> str:
        """What a start says that ends with status 2 and prints nothing."""
        status, output, messages = self.start(*arguments, script=script, **extra)
        assert (status, output) == (2, ""), messages
        return messages

    def environments(self) -> list[str]:
        folder = self.cache / "schedlab" / "python"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def python_with(template: Path) -> str:
    """A Python whose module venv copies an environment that is there, to save time."""
    cp = shutil.which("cp")
    return f'case "$*" in "-I -m venv "*) exec "{cp}" -a "{template}" "$4" ;; esac\nexec "{sys.executable}" "$@"'


def python_that(makes: str) -> str:
    """A Python whose module venv does this instead."""
    return f'case "$*" in "-I -m venv "*) {makes} ;; esac\nexec "{sys.executable}" "$@"'


PIP = """
import sys
from pathlib import Path

wanted = Path(sys.argv[sys.argv.index("-r") + 1]).read_text()
assert sys.argv.count("install") == 1 and wanted.startswith("#") and wanted.count("\\n") == 1
"""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of Python, as the real module makes it, with a pip that has nothing to install: the real one
    takes a half of a test's time."""
    place = tmp_path_factory.mktemp("template") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (libraries,) = place.glob("lib/python*/site-packages")
    (libraries / "pip").mkdir()
    (libraries / "pip" / "__main__.py").write_text(PIP)
    return place


@pytest.fixture
def host(tmp_path: Path, template: Path) -> Host:
    return Host(tmp_path, template)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "ca che"


@pytest.fixture
def later(host: Host, kept: Path) -> Host:
    """A start of many, by root: all tests that ask for it have one cache, where the first of them makes the
    environments."""
    host.cache = kept
    host.add("id", "echo 0")
    return host


# --- what is started -----------------------------------------------------------------------------


def test_starts_from_anywhere_with_arguments_as_they_are(host: Host) -> None:
    link = host.folder / "another place"
    link.mkdir()
    (link / "one").symlink_to("../a: check out/schedlab")
    (link / "two").symlink_to(link / "one")
    first = host.start("doctor", "a b", "", "*", script=link / "two", cwd=Path("/"))
    assert first[:2] == (0, "doctor|a b||*\n")
    assert "making the Python environment" in first[2]
    assert host.start("doctor", "a b", "", "*", script=link / "two") == (0, first[1], "")


def test_a_second_start_asks_nobody(host: Host) -> None:
    host.add_needed()
    host.add_apt()
    if not Path("/usr/bin/python3").exists():
        pytest.skip("the launcher prefers a Python that this host does not have")
    assert host.start("run", SCHEDLAB_PYTHON="")[0] == 0
    host.add("python3", f'echo python >>"{host.calls}"; exit 1')
    assert host.start("run", "x", SCHEDLAB_PYTHON="") == (0, "run|x\n", "")
    assert not host.calls.exists()


PRINTER = """
import json, os, subprocess, sys
child = [sys.executable, "-c", "import json, sys; print(json.__file__, sys.stdout.encoding)"]
print(json.__file__, sys.stdout.encoding, flush=True)
subprocess.run(child, check=True, cwd="/")
print("\u2713 " + open(sys.argv[1]).read())
"""


def test_the_callers_settings_of_python_change_nothing(host: Host) -> None:
    """Neither while the environment is made, nor in the package, nor in what that starts."""
    trap = host.folder / "trap"
    trap.mkdir()
    for name in ("json", "venv", "ensurepip", "pip", "runpy", "encodings", "schedlab"):
        (trap / f"{name}.py").write_text("raise SystemExit('trapped')\n")
    (host.checkout / "python" / "schedlab" / "__main__.py").write_text(PRINTER)
    text = host.folder / "text"
    text.write_text("sch\u00f6n\n", encoding="utf-8")
    host.settings = {
        "PYTHONPATH": str(trap),
        "PYTHONHOME": str(trap),
        "PYTHONSTARTUP": str(trap / "pip.py"),
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "C",
        "PYTHONINSPECT": "1",
        "PYTHONSAFEPATH": "",
    }
    status, output, messages = host.start(str(text), cwd=trap)
    assert status == 0, messages
    expected = f"{json.__file__} utf-8\n"
    assert output == f"{expected}{expected}\u2713 sch\u00f6n\n\n"


# --- what is installed ---------------------------------------------------------------------------

GUEST = "qemu-system-x86_64 zstd"
BOTH = "dtc qemu-system-riscv64"
NEEDED = {
    "run": "dtc",
    "run --machine spike": "dtc",
    "run --machine qemu": "qemu-system-riscv64",
    "run --machine=sim": "",
    "run --machine linux --policy rr": GUEST,
    "run --machine=linux-free": GUEST,
    "run --workload sweep.yaml": "dtc",
    "run study-5": f"dtc {GUEST}",
    "run --help": "",
    "reproduce": "dtc",
    "reproduce study-3 --full": f"dtc {GUEST}",
    "reproduce study-5 --machine spike": "dtc",
    "reproduce study-5 --machine linux": GUEST,
    "reproduce study-1 --help": "",
    "replay runs": "",
    "verify runs": "dtc",
    "boot": "qemu-system-riscv64",
    "boot --machine=spike": "dtc",
    "boot --machine spike,qemu": BOTH,
    "monitor": "qemu-system-riscv64",
    "monitor .": "",
    "monitor --speed 0.1 trace.bin": "",
    "monitor --workload sweep.yaml": "qemu-system-riscv64",
    "monitor --machine linux": GUEST,
    "monitor --machine sim": "",
    "top": "qemu-system-riscv64",
    "sweep --machine sim,qemu": "qemu-system-riscv64",
    "sweep sweep.yaml": "dtc",
    "policies": "",
    "grade rr mine.c": "dtc bwrap",
    "grade rr mine.c --trust": "dtc",
    "mcp folder": "bwrap",
    "score rr": "",
    "score rr --level true": "dtc",
    "score rr --level confirmed": GUEST,
    "explore policy rr": "",
    "explore kernel": "dtc",
    "compare a b": "",
    "compare a.baseline --gate": "dtc",
    "linux boot": GUEST,
    "linux serve": "",
    "test": " ".join({*PACKAGES} - {"make"}),
    "dev bench agreement": BOTH,
    "dev docs": "dtc chromium-headless-shell",
    "dev soak --hours 1": f"{BOTH} {GUEST} chromium-headless-shell",
    "dev soak sweep --hours 2": BOTH,
    "dev soak page serve": f"{BOTH} {GUEST} chromium-headless-shell",
    "doctor": "",
    "--help": "",
    "trace x": "",
}
"""The programs that commands get where the host has a compiler alone."""


@pytest.mark.parametrize("words", NEEDED)
def test_each_command_gets_what_it_needs(later: Host, words: str) -> None:
    """Whatever lies in the folder from which it is started: a checkout has folders named as machines are."""
    (later.folder / "sweep.yaml").write_text("machine: [sim, spike]\n")
    for name in ("spike", "sim"):
        (later.folder / name).mkdir()
    later.add_needed(*{*PACKAGES} - {"make"})
    later.add_apt(" ".join(PACKAGES), " ".join(PACKAGES.values()))
    status, output, messages = later.start(*words.split(), SCHEDLAB_CLANG="clang-19")
    assert (status, output) == (0, "|".join(words.split()) + "\n"), messages
    assert later.installed() == {PACKAGES[name] for name in NEEDED[words].split()}


def test_names_the_command_where_it_may_not_install(later: Host) -> None:
    later.add_needed("dtc", "ld.lld-19")
    later.add_apt()
    later.add("id", "echo 1000")
    later.add("sudo", "exit 1")
    words = "sudo apt-get install --no-install-recommends clang-19 lld-19 llvm-19 device-tree"
    assert words in later.refusal("run")
    assert not later.calls.exists()


def test_installs_through_sudo_that_asks_nothing(later: Host) -> None:
    later.add_needed("make")
    later.add_apt(installs="make")
    later.add("id", "echo 1000")
    later.add("sudo", 'shift; echo "as root" >>"' + str(later.calls) + '"; exec "$@"')
    status, output, messages = later.start("run")
    assert (status, output) == (0, "run\n")
    assert "(for make; 2 MB to fetch)" in messages
    assert "as root" in later.calls.read_text()


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("clang-21 clang-18", "clang-21 lld-21 llvm-21 qemu-system-misc"),
        ("clang-19 clang-21 qemu-system-riscv", "clang-19 lld-19 llvm-19 qemu-system-riscv"),
        ("nothing", "clang-19 lld-19 llvm-19 qemu-system-misc"),
    ],
)
def test_asks_for_packages_that_the_release_has(later: Host, names: str, wanted: str) -> None:
    later.add_needed("clang-19", "qemu-system-riscv64")
    later.add_apt(names=names)
    later.add("id", "echo 1000")
    assert f"--no-install-recommends {wanted}\n" in later.refusal("boot")


@pytest.mark.parametrize("known", ["linux-tools-generic", ""])
def test_the_tests_go_without_what_the_release_does_not_have(later: Host, known: str) -> None:
    later.add_needed("perf", "trace-cmd", "bwrap", "chromium-headless-shell")
    later.add_apt(installs="perf", names=known or "clang-19")
    assert later.start("test", SCHEDLAB_CLANG="clang-19")[:2] == (0, "test\n")
    assert later.installed() == ({known} if known else set())


def test_a_package_that_the_lists_tell_of_only_when_fetched(later: Host) -> None:
    later.add_needed("dtc", "chromium-headless-shell")
    installing = f'*headless*) ln -sf sh "{later.bin}/chromium-headless-shell" ;; *) ln -sf sh "{later.bin}/dtc" ;;'
    later.add("apt-get", f'echo "$*" >>"{later.calls}"\ncase "$*" in {installing} esac')
    known = f'[ -e "{later.calls}" ] && [ "$2" = chromium-headless-shell ]'
    later.add("apt-cache", f'{known} && echo "Package: $2"')
    assert later.start("test", SCHEDLAB_CLANG="clang-19")[:2] == (0, "test\n")
    assert "chromium-headless-shell" in later.calls.read_text()


def test_says_so_when_installing_does_not_help(later: Host) -> None:
    later.add_needed("make")
    assert "this needs make" in later.refusal("run")
    later.add_apt()
    assert "still missing after the installation: make" in later.refusal("run")


@pytest.mark.parametrize(
    "arguments", [["policies"], ["monitor", "."], ["monitor", "--port", "0", "x.bin"]]
)
def test_what_the_repository_keeps_compiled_needs_no_compiler(
    later: Host, arguments: list[str]
) -> None:
    later.add_apt()
    assert later.start(*arguments)[0] == 0
    assert not later.calls.exists()
    later.keep_page("b2")  # a policy has changed since
    later.add("id", "echo 1000")
    later.add("sudo", "exit 1")
    assert "this needs clang" in later.refusal(*arguments)


@pytest.mark.parametrize("version", [16, 21])
def test_another_compiler_serves(later: Host, version: int) -> None:
    later.add_needed(*COMPILER)
    later.add(f"clang-{version}")
    later.add(f"llvm-nm-{version}")
    later.refusal("run")
    later.add(f"ld.lld-{version}")
    assert later.start("run")[0] == 0
    assert "clang-99" in later.refusal("run", SCHEDLAB_CLANG="clang-99")


def test_a_host_of_another_processor_is_told_once_what_works(host: Host) -> None:
    """Nothing is installed for guests that cannot be."""
    host.add_processor("aarch64")
    host.add_needed("qemu-system-x86_64", "zstd")
    host.add_apt()
    status, _, messages = host.start("run", "--machine", "linux")
    assert (status, host.calls.exists()) == (0, False)
    (line,) = (line for line in messages.splitlines() if "aarch64" in line)
    assert "Spike and Linux guests need x86-64" in line
    assert "aarch64" not in host.start("doctor")[2]


@pytest.mark.parametrize(
    ("system", "cure"),
    [
        ("Darwin", "a Linux virtual machine or container on this Mac"),
        ("MINGW64_NT-10.0-22631", "WSL 2"),
        ("FreeBSD", "a Linux virtual machine"),
    ],
)
def test_another_system_is_told_so_by_what_each_system_has(
    host: Host, system: str, cure: str
) -> None:
    for path in host.bin.iterdir():
        if path.name != "dash":
            path.unlink()
    host.add("uname", f"echo {system}")
    (host.bin / "sh").symlink_to("dash")
    (line,) = host.refusal("run").splitlines()
    assert system in line and cure in line
    assert not host.cache.exists()


def test_a_completion_installs_nothing(host: Host) -> None:
    host.settings["_SCHEDLAB_COMPLETE"] = "bash_complete"
    assert host.start() == (0, "", "")
    assert not host.environments()


# --- the environment of Python -------------------------------------------------------------------


def test_a_named_python_must_serve(host: Host) -> None:
    host.add("old-python", "exit 1")
    assert "old-python" in host.refusal("doctor", SCHEDLAB_PYTHON="old-python")
    assert host.environments() == []


def test_a_failed_installation_leaves_nothing(host: Host) -> None:
    """By the real modules."""
    host.add("python3", f'exec "{sys.executable}" "$@"')
    (host.checkout / "python" / "requirements.lock").write_text("nothing-of-that-name==0\n")
    assert "pip could not install" in host.refusal("doctor", PIP_NO_INDEX="1")
    assert host.environments() == []


def test_a_python_that_makes_no_environment_is_heard(host: Host) -> None:
    host.add("python3", python_that('echo "no space"; exit 1'))
    assert host.refusal("doctor").splitlines()[1] == "no space"
    assert host.environments() == []


def test_a_start_that_is_ended_leaves_nothing(host: Host, template: Path) -> None:
    """An orphan that outlives the start must not keep the lock."""
    started = host.folder / "started"
    host.add("python3", python_that(f'sleep 60 & touch "{started}"; wait'))
    with host.popen("doctor") as process:
        wait_for(started)
        interrupt(process)
        process.wait(timeout=60)
        assert process.returncode not in (0, 2)
    host.add("python3", python_with(template))
    assert host.start("doctor")[:2] == (0, "doctor\n")
    assert not [name for name in host.environments() if "new" in name]


def test_a_start_that_is_interrupted_tells_of_no_insides(host: Host) -> None:
    """Neither when its end comes before the launcher has heard of the interrupt."""
    started = host.folder / "started"
    waits = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    host.add("python3", python_that(f"exec '{sys.executable}' -c \"{waits}\""))
    with host.popen("doctor") as process:
        wait_for(started)
        interrupt(process)
        output, messages = process.communicate(timeout=60)
    host.add("python3", python_that("echo insides; kill -INT $$"))
    for said in ((output, messages), host.start("doctor")[1:]):
        assert said[0] == ""
        assert "interrupted" in said[1].splitlines()[1]
        assert len(said[1].splitlines()) == 2
    assert host.environments() == []


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


def interrupt(process: subprocess.Popen[str]) -> None:
    """As a terminal does it: all of the group's processes."""
    for child in children_of(process.pid):
        with suppress(ProcessLookupError):  # the end of one may have ended it
            os.kill(child, signal.SIGINT)
    os.kill(process.pid, signal.SIGINT)


def waiting_for_the_lock(process: subprocess.Popen[str]) -> int:
    """The process that waits for a start."""
    for _ in range(600):
        for child in children_of(process.pid):
            with suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text() == "flock\n":
                    return child
        time.sleep(0.05)
    raise AssertionError("it does not wait")


def children_of(parent: int) -> list[int]:
    """All descendants."""
    return [child.pid for child in psutil.Process(parent).children(recursive=True)[::-1]]


def test_first_starts_side_by_side_make_one_environment(host: Host) -> None:
    processes = [host.popen("doctor", str(number)) for number in range(4)]
    ends = [process.communicate(timeout=120) for process in processes]
    assert [output for output, _ in ends] == [f"doctor|{number}\n" for number in range(4)]
    assert sum("making the Python environment" in messages for _, messages in ends) == 1
    assert len(host.environments()) == 1


@pytest.mark.parametrize("interrupted", ["the one that makes", "the one that waits", "its wait"])
def test_an_interrupt_ends_one_of_two_first_starts(
    host: Host, template: Path, interrupted: str
) -> None:
    started, goes_on = host.folder / "started", host.folder / "goes-on"
    held = f'touch "{started}"; until [ -e "{goes_on}" ]; do sleep 0.05; done'
    host.add("python3", f'case "$*" in "-I -m venv "*) {held} ;; esac\n{python_with(template)}')
    with host.popen("doctor", "makes") as makes:
        wait_for(started)
        with host.popen("doctor", "waits") as waits:
            wait = waiting_for_the_lock(waits)
            ends, other = (makes, waits) if interrupted.endswith("makes") else (waits, makes)
            if interrupted == "its wait":
                os.kill(wait, signal.SIGINT)
            else:
                interrupt(ends)
            try:
                assert ends.communicate(timeout=60)[0] == ""
            finally:
                goes_on.touch()
            assert ends.returncode not in (0, 2)
            output, messages = other.communicate(timeout=120)
    assert output == f"doctor|{'waits' if other is waits else 'makes'}\n", messages
    (name,) = host.environments()
    assert "new" not in name


def test_an_environment_whose_python_is_gone_is_made_anew(host: Host) -> None:
    assert host.start("doctor")[0] == 0
    (name,) = host.environments()
    python = host.cache / "schedlab" / "python" / name / "bin" / "python"
    python.unlink()
    python.symlink_to("/gone")
    assert host.start("doctor")[:2] == (0, "doctor\n")


def test_commands_have_libraries_of_their_own_on_top_of_the_others(host: Host) -> None:
    """And another list of libraries has another environment."""
    host.add_needed()
    assert host.start("run")[0] == 0
    (run,) = host.environments()
    (host.checkout / "python" / "schedlab" / "__main__.py").write_text(
        "import sys; print(*sys.path, sep='|')\n"
    )
    status, output, _ = host.start("dev", "lint", SCHEDLAB_CLANG="clang-19")
    assert status == 0
    (tests,) = set(host.environments()) - {run}
    paths = output.split("|")
    order = [next(at for at, path in enumerate(paths) if each in path) for each in (tests, run)]
    assert order == sorted(order)
    assert host.start("mcp", "folder", SCHEDLAB_CLANG="clang-19")[0] == 0
    assert len(host.environments()) == 3
    (host.checkout / "python" / "requirements.lock").write_text("# other\n")
    host.start("doctor")
    assert len(host.environments()) == 4


@pytest.fixture
def shared(host: Host) -> Path:
    """A cache that another user has filled."""
    assert host.start("doctor")[0] == 0
    (name,) = host.environments()
    (host.cache / "schedlab" / "python" / name.rpartition("-")[0]).symlink_to(name)
    return host.cache.rename(host.folder / "of the class")


def states(folder: Path) -> dict[str, tuple[int, int]]:
    found = {str(path): path.lstat() for path in (folder, *folder.rglob("*"))}
    return {name: (each.st_mtime_ns, each.st_size) for name, each in found.items()}


def test_a_shared_cache_is_used_and_not_written_to(host: Host, shared: Path) -> None:
    before = states(shared)
    host.settings["SCHEDLAB_SHARED_CACHE"] = str(shared)
    assert host.start("doctor") == (0, "doctor\n", "")
    assert host.start("doctor", SCHEDLAB_PYTHON="")[1:] == ("doctor\n", "")
    host.add_needed()
    assert host.start("dev", "lint", SCHEDLAB_CLANG="clang-19")[:2] == (0, "dev|lint\n")
    assert len(host.environments()) == 1  # of the tests, on top of the shared one
    (host.checkout / "python" / "requirements.lock").write_text("# another release\n")
    status, output, messages = host.start("doctor")
    assert (status, output) == (0, "doctor\n")
    assert f"{shared}/schedlab is of another release" in messages
    assert host.start("doctor") == (0, "doctor\n", "")
    assert states(shared) == before


@pytest.mark.parametrize("place", ["/gone", "relative"])
def test_a_shared_cache_that_is_not_there_is_told_and_passed_over(host: Host, place: str) -> None:
    status, output, messages = host.start("doctor", SCHEDLAB_SHARED_CACHE=place)
    assert (status, output) == (0, "doctor\n")
    assert f"SCHEDLAB_SHARED_CACHE is '{place}'" in messages
    assert len(host.environments()) == 1


def test_a_place_that_holds_no_cache_is_named(host: Host) -> None:
    file = host.folder / "file"
    file.touch()
    places = [({"XDG_CACHE_HOME": str(file)}, f"{file}/schedlab (Not a directory)"),
              ({"XDG_CACHE_HOME": str(host.folder / "a:b")}, "has a colon in its path")]  # fmt: skip
    for home in ("", "relative", str(host.folder / "gone")):
        places.append(({"XDG_CACHE_HOME": "", "HOME": home}, "HOME"))
    for settings, words in places:
        (line,) = host.refusal("doctor", **settings).splitlines()
        assert words in line and "Name a folder in XDG_CACHE_HOME" in line
    assert not (host.folder / "gone").exists()
    host.add("df", "echo heading; echo disk 100000 90000 10240 90% /")
    (line,) = host.refusal("doctor").splitlines()
    assert f"{host.cache}/schedlab has 10 MB left, and 871 MB are needed" in line
    assert host.environments() == []


def test_a_cache_among_the_files_of_the_checkout_is_refused(host: Host) -> None:
    """The cache is a folder called schedlab, as a checkout usually is."""
    checkout = host.checkout.rename(host.folder / "schedlab")
    before = sorted(path.name for path in checkout.iterdir())
    script = checkout / "schedlab"
    said = host.refusal("doctor", script=script, XDG_CACHE_HOME=str(host.folder))
    assert "among its files" in said
    assert sorted(path.name for path in checkout.iterdir()) == before
