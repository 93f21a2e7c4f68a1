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

import pytest

from conftest import ROOT

# What the launcher and venv call. Everything else is not on the PATH of these tests.
HOST_PROGRAMS = (
    *("sh", "dash", "cat", "sha256sum", "readlink", "dirname", "mkdir", "rm", "mv", "ln"),
    *("flock", "grep", "env", "sed", "sleep", "touch", "id", "true"),
)
NEEDED = (
    *("clang-19", "ld.lld-19", "llvm-nm-19", "make", "dtc", "qemu-system-riscv64"),
    *("qemu-system-x86_64", "zstd"),
)

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
        for name in NEEDED:
            if name not in without:
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

    def environments(self) -> list[str]:
        folder = self.cache / "schedlab" / "python"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def python_with(template: Path) -> str:
    """A Python whose module venv copies an environment that is there, to save time."""
    cp = shutil.which("cp")
    return f'case "$*" in "-I -m venv "*) exec "{cp}" -a "{template}" "$4" ;; esac\nexec "{sys.executable}" "$@"'


PIP = """
import sys
from pathlib import Path

wanted = Path(sys.argv[sys.argv.index("-r") + 1]).read_text()
assert sys.argv.count("install") == 1 and wanted.startswith("#") and wanted.count("\\n") == 1
"""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of Python, as the real module makes it, with a pip that has nothing to install: the real one
    takes a half of a test's time. Tests of `real_python` have that."""
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
def later(host: Host, kept: Path) -> None:
    """A start of many: all tests that ask for it have one cache, where the first of them makes the environments."""
    host.cache = kept


@pytest.fixture
def real_python(host: Host) -> None:
    """Environments are made by the real modules."""
    host.add("python3", f'exec "{sys.executable}" "$@"')


def test_starts_from_anywhere_with_arguments_as_they_are(host: Host) -> None:
    link = host.folder / "another place"
    link.mkdir()
    (link / "one").symlink_to("../a: check out/schedlab")
    (link / "two").symlink_to(link / "one")
    first = host.start("doctor", "a b", "", "*", script=link / "two", cwd=Path("/"))
    assert first[:2] == (0, "doctor|a b||*\n")
    assert "making the Python environment" in first[2]
    status, output, messages = host.start("doctor", "a b", "", "*", script=link / "two")
    assert (status, output, messages) == (0, "doctor|a b||*\n", "")


def test_a_second_start_asks_nobody(host: Host) -> None:
    host.add_needed()
    host.add_apt()
    system_python = Path("/usr/bin/python3")
    if not system_python.exists():
        pytest.skip("the launcher prefers a Python that this host does not have")
    assert host.start("run", SCHEDLAB_PYTHON="")[0] == 0
    host.add("python3", f'echo python >>"{host.calls}"; exit 1')
    assert host.start("run", "x", SCHEDLAB_PYTHON="") == (0, "run|x\n", "")
    assert not host.calls.exists()


def test_the_callers_folder_does_not_stand_in_for_libraries(host: Host) -> None:
    trap = host.folder / "trap"
    (trap / "schedlab").mkdir(parents=True)
    (trap / "schedlab" / "__init__.py").touch()
    (trap / "schedlab" / "__main__.py").write_text("print('trapped')\n")
    assert host.start("doctor", cwd=trap)[1] == "doctor\n"


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
    for name in ("json", "venv", "ensurepip", "pip", "runpy", "encodings"):
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


@pytest.mark.usefixtures("later")
def test_names_the_command_where_it_may_not_install(host: Host) -> None:
    host.add_needed("dtc", "ld.lld-19")
    host.add_apt()
    host.add("id", "echo 1000")
    host.add("sudo", "exit 1")
    status, output, messages = host.start("run")
    assert (status, output) == (2, "")
    assert (
        "    sudo apt-get install --no-install-recommends clang-19 lld-19 llvm-19 device-tree"
        in messages
    )
    assert not host.calls.exists()


@pytest.mark.usefixtures("later")
def test_installs_what_is_missing_and_goes_on(host: Host) -> None:
    host.add_needed("dtc", "qemu-system-riscv64")
    host.add_apt(installs="dtc qemu-system-riscv64")
    host.add("id", "echo 0")
    status, output, messages = host.start("boot", "--machine", "spike,qemu")
    assert (status, output) == (0, "boot|--machine|spike,qemu\n")
    (installed,) = (line for line in host.calls.read_text().splitlines() if "install" in line)
    assert installed.endswith("--no-install-recommends device-tree-compiler qemu-system-misc")
    assert "(for dtc, qemu-system-riscv64; 2 MB to fetch)" in messages


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run"], "device-tree-compiler"),
        (["reproduce", "study-3", "--full"], "device-tree-compiler"),
        (["run", "--workload", "sweep.yaml"], "device-tree-compiler"),
        (["run", "--machine", "spike"], "device-tree-compiler"),
        (["run", "--machine", "qemu"], "qemu-system-misc"),
        (["run", "--machine=sim"], ""),
        (["replay", "runs"], ""),
        (["verify", "runs"], "device-tree-compiler"),
        (["boot"], "qemu-system-misc"),
        (["boot", "--machine=spike"], "device-tree-compiler"),
        (["monitor"], "qemu-system-misc"),
        (["monitor", "."], ""),
        (["monitor", "--speed", "0.1", "trace.bin"], ""),
        (["monitor", "--workload", "sweep.yaml"], "qemu-system-misc"),
        (["sweep", "--machine", "sim,qemu"], "qemu-system-misc"),
        (["sweep", "sweep.yaml"], "device-tree-compiler"),
        (["policies"], ""),
        (["dev", "bench"], "device-tree-compiler qemu-system-misc"),
    ],
)
@pytest.mark.usefixtures("later")
def test_a_machine_is_installed_for_commands_that_start_it(
    host: Host, arguments: list[str], wanted: str
) -> None:
    """Whatever lies in the folder from which it is started: a checkout has folders named as machines are."""
    (host.folder / "sweep.yaml").write_text("machine: [sim, spike]\n")
    for name in ("spike", "sim"):
        (host.folder / name).mkdir()
    host.add_needed("dtc", "qemu-system-riscv64")
    host.add_apt(installs="dtc qemu-system-riscv64")
    host.add("id", "echo 0")
    assert host.start(*arguments)[0] == 0
    calls = host.calls.read_text().splitlines() if host.calls.exists() else []
    assert [line.partition("--no-install-recommends ")[2] for line in calls] == [wanted][
        : len(wanted)
    ]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("clang-21 clang-18", "clang-21 lld-21 llvm-21 qemu-system-misc"),
        ("clang-19 clang-21 qemu-system-riscv", "clang-19 lld-19 llvm-19 qemu-system-riscv"),
        ("nothing", "clang-19 lld-19 llvm-19 qemu-system-misc"),
    ],
)
@pytest.mark.usefixtures("later")
def test_asks_for_packages_that_the_release_has(host: Host, names: str, wanted: str) -> None:
    host.add_needed("clang-19", "qemu-system-riscv64")
    host.add_apt(names=names)
    host.add("id", "echo 1000")
    status, _, messages = host.start("boot")
    assert status == 2
    assert f"    sudo apt-get install --no-install-recommends {wanted}\n" in messages


def start_tests(host: Host) -> tuple[int, str, str]:
    """With all that `./schedlab test` needs, except a browser."""
    host.add_needed()
    host.add("id", "echo 0")
    return host.start("test", SCHEDLAB_CLANG="clang-19")


@pytest.mark.usefixtures("later")
def test_the_tests_get_a_browser_where_the_release_has_one(host: Host) -> None:
    host.add_apt(installs="chromium-headless-shell", names="chromium-headless-shell")
    assert start_tests(host)[:2] == (0, "test\n")
    (installed,) = (line for line in host.calls.read_text().splitlines() if "install" in line)
    assert installed.endswith("--no-install-recommends chromium-headless-shell")


@pytest.mark.parametrize(
    "arguments", [["dev", "soak"], ["dev", "soak", "sweep", "page", "--hours", "2"]]
)
@pytest.mark.usefixtures("later")
def test_a_soak_of_the_page_gets_a_browser(host: Host, arguments: list[str]) -> None:
    host.add_apt(installs="chromium-headless-shell", names="chromium-headless-shell")
    host.add_needed()
    host.add("id", "echo 0")
    assert host.start(*arguments)[0] == 0
    assert "chromium-headless-shell" in host.calls.read_text()


@pytest.mark.usefixtures("later")
def test_other_soaks_do_without_a_browser(host: Host) -> None:
    host.add_apt(names="chromium-headless-shell")
    host.add_needed()
    assert host.start("dev", "soak", "sweep", "--hours", "2")[0] == 0
    assert not host.calls.exists()


@pytest.mark.usefixtures("later")
def test_a_browser_that_the_lists_of_packages_tell_of_only_when_fetched(host: Host) -> None:
    host.add_apt(installs="dtc")
    installing = f'*headless*) ln -sf sh "{host.bin}/chromium-headless-shell" ;; *) ln -sf sh "{host.bin}/dtc" ;;'
    host.add("apt-get", f'echo "$*" >>"{host.calls}"\ncase "$*" in {installing} esac')
    known = f'[ -e "{host.calls}" ] && [ "$2" = chromium-headless-shell ]'
    host.add("apt-cache", f'{known} && echo "Package: $2"')
    host.add_needed("dtc")
    host.add("id", "echo 0")
    assert host.start("test", SCHEDLAB_CLANG="clang-19")[:2] == (0, "test\n")
    assert "chromium-headless-shell" in host.calls.read_text()


@pytest.mark.parametrize("browser", ["", "chromium", "google-chrome"])
@pytest.mark.usefixtures("later")
def test_the_tests_go_without_the_browser_of_another_release(host: Host, browser: str) -> None:
    host.add_apt(names="chromium-headless-shell" if browser else "clang-19")
    if browser:
        host.add(browser)
    assert start_tests(host)[:2] == (0, "test\n")
    assert not host.calls.exists()


@pytest.mark.parametrize(
    ("program", "package"),
    [
        *(("perf", "linux-perf"), ("perf", "linux-tools-generic"), ("trace-cmd", "trace-cmd")),
        ("bwrap", "bubblewrap"),
    ],
)
@pytest.mark.usefixtures("later")
def test_the_tests_get_what_reads_recordings_and_a_sandbox(
    host: Host, program: str, package: str
) -> None:
    host.add_apt(installs=program, names=package)
    assert start_tests(host)[:2] == (0, "test\n")
    (installed,) = (line for line in host.calls.read_text().splitlines() if "install" in line)
    assert installed.endswith(f"--no-install-recommends {package}")


@pytest.mark.parametrize(
    ("arguments", "installed"),
    [
        (["grade", "rr", "mine.c"], ["bubblewrap"]),
        (["grade", "rr", "mine.c", "--trust"], []),
        (["score", "rr"], []),
    ],
)
@pytest.mark.usefixtures("later")
def test_what_others_wrote_gets_a_sandbox(
    host: Host, arguments: list[str], installed: list[str]
) -> None:
    host.add_needed()
    host.add_apt(installs="bwrap", names="bubblewrap")
    assert host.start(*arguments)[0] == 0
    calls = host.calls.read_text().splitlines() if host.calls.exists() else []
    assert [line.split()[-1] for line in calls if "install" in line] == installed


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["score", "rr"], False),
        (["score", "rr", "--level", "true"], True),
        (["explore", "policy", "rr"], False),
        (["explore", "kernel"], True),
        (["compare", "a", "b"], False),
        (["compare", "a.baseline", "--gate"], True),
    ],
)
@pytest.mark.usefixtures("later")
def test_what_boots_the_kernel_now_and_then_gets_its_machine(
    host: Host, arguments: list[str], needed: bool
) -> None:
    host.add_needed("dtc")
    host.add_apt(installs="dtc", names="device-tree-compiler")
    assert host.start(*arguments)[0] == 0
    assert host.calls.exists() is needed


@pytest.mark.usefixtures("later")
def test_other_commands_do_without_what_reads_recordings(host: Host) -> None:
    host.add_apt(names="linux-perf | trace-cmd")
    host.add_needed()
    assert host.start("run")[:2] == (0, "run\n")
    assert not host.calls.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--machine", "linux", "--policy", "rr"],
        ["run", "--machine=linux-free"],
        ["run", "study-5"],
        ["reproduce", "study-5"],
        ["reproduce", "study-5", "--machine", "linux"],
        ["linux", "boot"],
        ["monitor", "--machine", "linux"],
        ["dev", "soak", "--hours", "1"],
        ["dev", "soak", "page", "serve"],
        ["test"],
    ],
)
@pytest.mark.usefixtures("later")
def test_commands_that_boot_linux_get_what_that_needs(host: Host, arguments: list[str]) -> None:
    host.add_needed("qemu-system-x86_64", "zstd")
    host.add_apt(installs="qemu-system-x86_64 zstd")
    host.add("id", "echo 0")
    status, _, messages = host.start(*arguments, SCHEDLAB_CLANG="clang-19")
    assert status == 0, messages
    (installed,) = (line for line in host.calls.read_text().splitlines() if "install" in line)
    assert installed.endswith("--no-install-recommends qemu-system-x86 zstd")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["reproduce", "study-5", "--machine", "spike"],
        ["run", "--machine=sim"],
        ["linux", "status"],
        ["dev", "bench", "agreement"],
        ["boot"],
        ["monitor", "--machine", "sim"],
        ["dev", "soak", "page", "storm", "--hours", "1"],
        ["top"],
    ],
)
@pytest.mark.usefixtures("later")
def test_others_do_without(host: Host, arguments: list[str]) -> None:
    host.add_needed("qemu-system-x86_64", "zstd")
    host.add_apt()
    assert host.start(*arguments)[0] == 0
    assert not host.calls.exists()


@pytest.mark.usefixtures("later")
def test_a_real_linux_host_needs_no_machine_of_ours(host: Host) -> None:
    host.add_needed("qemu-system-x86_64", "qemu-system-riscv64", "dtc", "zstd")
    host.add_apt()
    assert host.start("linux", "serve")[0] == 0
    assert not host.calls.exists()


@pytest.mark.usefixtures("later")
def test_installs_through_sudo_that_asks_nothing(host: Host) -> None:
    host.add_needed("make")
    host.add_apt(installs="make")
    host.add("id", "echo 1000")
    host.add("sudo", 'shift; echo "as root" >>"' + str(host.calls) + '"; exec "$@"')
    assert host.start("run")[:2] == (0, "run\n")
    assert "as root" in host.calls.read_text()


@pytest.mark.usefixtures("later")
def test_says_so_when_installing_does_not_help(host: Host) -> None:
    host.add_needed("make")
    host.add_apt()
    host.add("id", "echo 0")
    status, output, messages = host.start("run")
    assert (status, output) == (2, "")
    assert "still missing after the installation: make" in messages


@pytest.mark.usefixtures("later")
def test_without_apt_names_what_is_missing(host: Host) -> None:
    host.add_needed("make")
    status, _, messages = host.start("run")
    assert status == 2
    assert "this needs make" in messages


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["run", "--help"],
        ["reproduce", "study-1", "--help"],
        ["--help"],
        ["trace", "x"],
        ["report", "x"],
    ],
)
@pytest.mark.usefixtures("later")
def test_installs_nothing_for_commands_that_need_none(host: Host, arguments: list[str]) -> None:
    host.add_apt()
    assert host.start(*arguments)[0] == 0
    assert not host.calls.exists()


@pytest.mark.parametrize(
    "arguments", [["policies"], ["monitor", "."], ["monitor", "--port", "0", "x.bin"]]
)
@pytest.mark.usefixtures("later")
def test_what_the_repository_keeps_compiled_needs_no_compiler(
    host: Host, arguments: list[str]
) -> None:
    host.add_apt()
    assert host.start(*arguments)[0] == 0
    assert not host.calls.exists()
    host.keep_page("b2")  # a policy has changed since
    host.add("id", "echo 1000")
    host.add("sudo", "exit 1")
    status, _, messages = host.start(*arguments)
    assert status == 2
    assert "this needs clang" in messages


@pytest.mark.parametrize("version", [16, 18, 21])
@pytest.mark.usefixtures("later")
def test_another_compiler_serves(host: Host, version: int) -> None:
    host.add_needed("clang-19", "ld.lld-19", "llvm-nm-19")
    host.add(f"clang-{version}")
    host.add(f"llvm-nm-{version}")
    assert host.start("run")[0] == 2
    host.add(f"ld.lld-{version}")
    assert host.start("run")[0] == 0


@pytest.mark.usefixtures("later")
def test_a_named_compiler_must_be_there(host: Host) -> None:
    host.add_needed()
    status, _, messages = host.start("run", SCHEDLAB_CLANG="clang-99")
    assert status == 2
    assert "SCHEDLAB_CLANG is 'clang-99'" in messages


def test_a_named_python_must_serve(host: Host) -> None:
    host.add("old-python", "exit 1")
    status, _, messages = host.start("doctor", SCHEDLAB_PYTHON="old-python")
    assert status == 2
    assert "SCHEDLAB_PYTHON is 'old-python', which is no CPython 3.10 or newer" in messages
    assert host.environments() == []


@pytest.mark.usefixtures("real_python")
def test_a_failed_installation_leaves_nothing(host: Host) -> None:
    (host.checkout / "python" / "requirements.lock").write_text("nothing-of-that-name==0\n")
    status, output, messages = host.start("doctor", PIP_NO_INDEX="1")
    assert (status, output) == (2, "")
    assert "pip could not install the libraries" in messages
    assert host.environments() == []


def test_a_start_that_is_ended_leaves_nothing(host: Host) -> None:
    started = host.folder / "started"
    # An orphan that outlives the start must not keep the lock.
    python = f'case "$*" in "-I -m venv "*) sleep 60 & touch "{started}"; wait ;; esac'
    host.add("python3", f'{python}\nexec "{sys.executable}" "$@"')
    with host.popen("doctor") as process:
        wait_for(started)
        interrupt(process)
        process.wait(timeout=60)
        assert process.returncode not in (0, 2)
    host.add("python3", f'exec "{sys.executable}" "$@"')
    assert host.start("doctor")[:2] == (0, "doctor\n")
    assert not [name for name in host.environments() if "new" in name]


def test_a_start_that_is_interrupted_tells_of_no_insides(host: Host) -> None:
    started = host.folder / "started"
    waits = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    python = f"case \"$*\" in '-I -m venv '*) exec '{sys.executable}' -c \"{waits}\" ;; esac"
    host.add("python3", f'{python}\nexec "{sys.executable}" "$@"')
    with host.popen("doctor") as process:
        wait_for(started)
        interrupt(process)
        output, messages = process.communicate(timeout=60)
    _, interrupted = messages.splitlines()
    assert (output, interrupted) == (
        "",
        "schedlab: interrupted; nothing of the environment is left behind",
    )
    assert host.environments() == []


def test_what_makes_the_environment_is_interrupted_and_no_more(host: Host) -> None:
    """As when its end comes before the launcher has heard of the interrupt."""
    python = 'case "$*" in "-I -m venv "*) echo insides; kill -INT $$ ;; esac'
    host.add("python3", f'{python}\nexec "{sys.executable}" "$@"')
    status, output, messages = host.start("doctor")
    assert (status, output) == (130, "")
    assert messages.splitlines()[1:] == [
        "schedlab: interrupted; nothing of the environment is left behind"
    ]
    assert host.environments() == []


def test_a_python_that_makes_no_environment_is_heard(host: Host) -> None:
    python = 'case "$*" in "-I -m venv "*) echo "no space"; exit 1 ;; esac'
    host.add("python3", f'{python}\nexec "{sys.executable}" "$@"')
    status, _, messages = host.start("doctor")
    assert status == 2
    _, said, stopped = messages.splitlines()
    assert said == "no space"
    assert "could not make an environment" in stopped
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
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found += [*children_of(int(entry.name)), int(entry.name)]
    return found


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


def test_the_tests_have_libraries_of_their_own_on_top_of_the_others(host: Host) -> None:
    """Which no other command fetches."""
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


def test_mcp_has_libraries_of_its_own(host: Host) -> None:
    host.add_needed()
    host.add("bwrap")
    assert host.start("mcp", "folder", SCHEDLAB_CLANG="clang-19")[:2] == (0, "mcp|folder\n")
    assert len(host.environments()) == 2


def test_another_lock_file_gets_another_environment(host: Host) -> None:
    host.start("doctor")
    (host.checkout / "python" / "requirements.lock").write_text("# other\n")
    host.start("doctor")
    assert len(host.environments()) == 2


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
    assert states(shared) == before


def test_a_shared_cache_of_another_release_is_told_and_passed_over(
    host: Host, shared: Path
) -> None:
    before = states(shared)
    (host.checkout / "python" / "requirements.lock").write_text("# other\n")
    status, output, messages = host.start("doctor", SCHEDLAB_SHARED_CACHE=str(shared))
    assert (status, output) == (0, "doctor\n")
    assert f"the shared cache {shared}/schedlab is of another release" in messages
    assert len(host.environments()) == 1
    assert states(shared) == before
    assert host.start("doctor", SCHEDLAB_SHARED_CACHE=str(shared)) == (0, "doctor\n", "")


@pytest.mark.parametrize("place", ["/gone", "relative"])
def test_a_shared_cache_that_is_not_there_is_told_and_passed_over(host: Host, place: str) -> None:
    status, output, messages = host.start("doctor", SCHEDLAB_SHARED_CACHE=place)
    assert (status, output) == (0, "doctor\n")
    assert f"SCHEDLAB_SHARED_CACHE is '{place}', where there is no cache to share" in messages
    assert len(host.environments()) == 1


def test_a_home_is_needed(host: Host) -> None:
    for home in ("", "relative", str(host.folder / "gone")):
        status, output, messages = host.start("doctor", XDG_CACHE_HOME="", HOME=home)
        assert (status, output) == (2, "")
        assert "HOME" in messages
        assert "Name a folder in XDG_CACHE_HOME" in messages
        assert len(messages.splitlines()) == 1
    assert not (host.folder / "gone").exists()


def test_a_cache_that_cannot_be_made_is_named(host: Host) -> None:
    file = host.folder / "file"
    file.touch()
    status, output, messages = host.start("doctor", XDG_CACHE_HOME=str(file))
    assert (status, output) == (2, "")
    assert f"cannot make the folder {file}/schedlab (Not a directory)" in messages
    assert len(messages.splitlines()) == 1


def test_a_disk_that_is_too_small_is_named_before_anything_is_written(host: Host) -> None:
    host.add("df", "echo heading; echo disk 100000 90000 10240 90% /")
    status, output, messages = host.start("doctor")
    assert (status, output) == (2, "")
    assert f"the disk of {host.cache}/schedlab has 10 MB left, and 871 MB are needed" in messages
    assert len(messages.splitlines()) == 1
    assert host.environments() == []


def test_a_cache_with_a_colon_is_refused(host: Host) -> None:
    place = host.folder / "a:b"
    status, output, messages = host.start("doctor", XDG_CACHE_HOME=str(place))
    assert (status, output) == (2, "")
    assert "has a colon in its path" in messages


def test_a_cache_among_the_files_of_the_checkout_is_refused(host: Host) -> None:
    """The cache is a folder called schedlab, as a checkout usually is."""
    checkout = host.checkout.rename(host.folder / "schedlab")
    before = sorted(path.name for path in checkout.iterdir())
    status, output, messages = host.start(
        "doctor", script=checkout / "schedlab", XDG_CACHE_HOME=str(host.folder)
    )
    assert (status, output) == (2, "")
    assert "the cache would lie among its files" in messages
    assert sorted(path.name for path in checkout.iterdir()) == before


# --- other systems, other processors -------------------------------------------------------------


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
    status, output, messages = host.start("run")
    assert (status, output) == (2, "")
    (line,) = messages.splitlines()
    assert f"this is {system}, and schedlab runs on Linux" in line
    assert cure in line
    assert not host.cache.exists()


def test_a_processor_of_another_kind_is_told_once_what_works(host: Host) -> None:
    host.add_processor("aarch64")
    messages = host.start("doctor")[2]
    (line,) = (line for line in messages.splitlines() if "aarch64" in line)
    assert "Spike and Linux guests need x86-64" in line
    assert "aarch64" not in host.start("doctor")[2]


def test_a_score_is_confirmed_in_a_guest(host: Host) -> None:
    host.add_needed("qemu-system-x86_64")
    host.add("apt-cache", "exit 1")
    status, _, messages = host.start("score", "mlfq", "--level", "confirmed")
    assert status == 2
    assert "qemu-system-x86_64" in messages
    assert host.start("score", "mlfq", "--level", "quick")[0] == 0


def test_nothing_is_installed_for_guests_that_cannot_be(host: Host) -> None:
    host.add_processor("aarch64")
    host.add_needed("qemu-system-x86_64", "zstd")
    host.add_apt()
    assert host.start("run", "--machine", "linux")[0] == 0
    assert not host.calls.exists()


def test_a_completion_installs_nothing(host: Host) -> None:
    host.settings["_SCHEDLAB_COMPLETE"] = "bash_complete"
    assert host.start() == (0, "", "")
    assert not host.environments()
