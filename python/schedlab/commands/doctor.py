# SPDX-License-Identifier: MIT
"""`./schedlab doctor`: lists schedlab's dependencies on this host,
and how to install missing ones.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.terminal import new_table, results, say
from schedlab.base.host.processor import is_complete, no_linux_guests, no_spike
from schedlab.base.toolchain.needs import (
    EXTRAS,
    LINUX_GUEST,
    PROGRAMS,
    cure,
    need_extra,
    need_if_installed,
)
from schedlab.base.toolchain.tools import (
    BUILD_EXTRA,
    find_compiler_if_installed,
    find_make,
    output,
    version_in,
)
from schedlab.commands.options import echo_json, json_option
from schedlab.commands.wording import worded
from schedlab.environment import BASE, SIZES, current_environment, libraries_of
from schedlab.errors import SchedlabError
from schedlab.paths import INSTALLED, ROOT, SHARED, shared_cache
from schedlab.recordings.reader import PERF, TRACE_CMD, version

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Finding:
    """One dependency. `status` is ok, missing, unfit, or absent (an optional one)."""

    name: str
    purpose: str
    status: str
    version: str = ""
    path: str = ""
    origin: str = ""
    advice: str = ""

    @property
    def healthy(self) -> bool:
        return self.status in ("ok", "absent")


def examine() -> list[Finding]:
    """Returns the findings of all dependencies."""
    findings = [python(), *cache_of_many(), *libraries(), *compilers()]
    findings += [builder(), sandbox(), spike(), qemu(), *linux_guest()]
    findings += [
        git(),
        *map(for_tests, ("dtc", "formatter", "sanitizers", "browser")),
        *recorders(),
    ]
    return [replace(finding, advice=worded(finding.advice)) for finding in name_packages(findings)]


def python() -> Finding:
    return Finding(
        "Python",
        "runs schedlab",
        "ok",
        platform.python_version(),
        str(Path(sys.executable).resolve()),
        f"private environment {sys.prefix}",
    )


def cache_of_many() -> Iterator[Finding]:
    """Yields the shared cache, if one is set. Missing parts are fetched into the user's cache."""
    shared = shared_cache()
    if not shared:
        return
    finding = Finding(
        "shared cache", "shared by several users", "ok", path=str(shared), origin=SHARED
    )
    if not shared.is_dir():
        advice = f"the folder is missing; check {SHARED}. Your own cache is used instead"
        finding = replace(finding, status="absent", advice=advice)
    elif not Path(sys.prefix).resolve().is_relative_to(shared.resolve()):
        advice = (
            "this Python is not from it: it has another release, or your own cache also has one"
        )
        finding = replace(finding, status="absent", advice=advice)
    yield finding


def libraries() -> Iterator[Finding]:
    """Yields the libraries that all commands need, and one finding per extra."""
    locked = {*_wished()}
    missing = sorted(name for name in locked if not version_of_library(name))
    cured = (
        "pip install schedlab"
        if INSTALLED
        else f"delete {sys.prefix}; the next start creates it again"
    )
    advice = f"{', '.join(missing)}: {cured}" if missing else ""
    yield Finding(
        "Python libraries",
        "used by all commands",
        "missing" if missing else "ok",
        f"{len(locked) - len(missing)} of {len(locked)}",
        advice=advice,
    )
    current = current_environment()
    for extra, (library, purpose) in EXTRAS.items():
        if extra == BUILD_EXTRA:
            continue  # compilers() reports it
        is_present = current.has(extra) if current else bool(version_of_library(library))
        advice = (
            ""
            if is_present
            else f"nothing: commands that need them fetch them ({SIZES[extra].fetched} MB)"
        )
        state = "ok" if is_present else "absent"
        yield Finding(
            f"libraries of {extra}", purpose, state, version_of_library(library), advice=advice
        )


def _wished() -> list[str]:
    """Returns the libraries that all commands need: from the lock file,
    or from the installed package.
    """
    if INSTALLED:
        wishes = importlib.metadata.requires("schedlab") or []
        return [
            re.split(r"[^\w-]", requirement)[0]
            for requirement in wishes
            if "extra ==" not in requirement
        ]
    return re.findall(r"^([\w-]+)==", libraries_of(BASE), re.MULTILINE)


def version_of_library(name: str) -> str:
    """Returns the version of an installed library, or ""."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def compilers() -> Iterator[Finding]:
    """Yields the compiler that produces results, and the host's compiler."""
    name, (_, purpose) = "compiler", EXTRAS[BUILD_EXTRA]
    try:
        chosen = find_compiler_if_installed()
    except SchedlabError as error:
        yield Finding(name, purpose, "missing", advice=str(error))
        return
    if not chosen:
        megabytes = SIZES[BUILD_EXTRA].fetched
        advice = f"nothing: the first build fetches it ({megabytes} MB, pinned by hash)"
        yield Finding(name, purpose, "absent", advice=advice)
    else:
        origin = "python/requirements.lock" if chosen.is_pinned else "SCHEDLAB_CLANG"
        path = shutil.which(chosen.clang[0]) or chosen.clang[0]
        yield Finding(name, purpose, "ok", f"clang {chosen.release}", path, origin)
    yield for_tests("system-compiler")


def builder() -> Finding:
    """Returns the finding of make. It comes with the compiler, except on Intel Macs."""
    purpose = PROGRAMS["make"].purpose
    if path := find_make():
        return replace(examine_program(path, purpose, ""), name="make")
    return Finding(
        "make", purpose, "absent", advice=f"the compiler's package brings it, or: {cure(['make'])}"
    )


def for_tests(name: str) -> Finding:
    """Returns the finding of a program that only tests need.

    Tests install it if the release has it.
    """
    needed = PROGRAMS[name]
    if needed.is_installed():
        return Finding(needed.what, needed.purpose, "ok")
    return Finding(
        needed.what,
        needed.purpose,
        "absent",
        advice=f"{cure([name])}; `./schedlab test` installs it if it is allowed to, and otherwise skips its tests",
    )


def program(name: str) -> Finding:
    """Returns the finding of a program of the table."""
    needed = PROGRAMS[name]
    return examine_program(needed.what, needed.purpose, cure([name]))


def examine_program(name: str, purpose: str, advice: str, origin: str = "") -> Finding:
    path = shutil.which(name)
    if not path:
        return Finding(name, purpose, "missing", advice=advice)
    text = output(path, "--version")
    version = ".".join(map(str, version_in(text)))
    if not text:
        return Finding(name, purpose, "unfit", path=path, advice=f"it does not run; {advice}")
    return Finding(name, purpose, "ok", version, path, origin or "PATH")


def sandbox() -> Finding:
    """Returns the finding of the sandbox, which only `grade` needs, to compile submissions."""
    from schedlab.courses.submissions.sandbox import missing_requirement

    finding = program("sandbox")
    why = missing_requirement()
    if not why:
        return finding
    advice = finding.advice or why
    return replace(
        finding, status="absent" if finding.status == "missing" else "unfit", advice=advice
    )


def spike() -> Finding:
    from schedlab.machines.spike import SPIKE_VARIABLE, can_run_spike, find_spike
    from schedlab.machines.spike_install import fetched_megabytes, spike_folder

    purpose = "the repeatable machine"
    if not can_run_spike():
        return Finding("spike", purpose, "absent", advice=no_spike())
    if is_complete() and not os.environ.get(SPIKE_VARIABLE) and not spike_folder().exists():
        return Finding(
            "spike",
            purpose,
            "absent",
            advice=f"nothing: the first run fetches it ({fetched_megabytes():.0f} MB, pinned by hash)",
        )
    return machine("spike", purpose, find_spike)


def qemu() -> Finding:
    from schedlab.machines.qemu import PROGRAM, find_qemu

    return emulator(PROGRAM, "the interactive machine", find_qemu, ("qemu",))


def emulator(name: str, purpose: str, find: Callable[[], Any], needs: tuple[str, ...]) -> Finding:
    """Returns the finding of a QEMU.

    Runs, reports and grades need none, so a host without one is healthy.
    """
    finding = machine(name, purpose, find)
    return finding if finding.path else replace(finding, status="absent", advice=cure(needs))


def linux_guest() -> Iterator[Finding]:
    """Yields what running policies on Linux needs.

    The Linux commands install and fetch missing parts.
    """
    from schedlab.machines.linux.guest import PROGRAM, find_qemu

    if not is_complete():
        yield Finding(PROGRAM, "runs Linux guests", "absent", advice=no_linux_guests())
        return
    finding = emulator(PROGRAM, "runs Linux guests", find_qemu, LINUX_GUEST)
    yield finding
    yield host_cpus(finding)
    yield linux_packages()


def host_cpus(emulator: Finding) -> Finding:
    """Returns the finding of KVM, as a guest detected it."""
    from schedlab.machines.linux.guest import kvm_problem
    from schedlab.machines.linux.kvm import DEVICE

    name, purpose = "KVM", "makes free-running Linux guests fast"
    if not emulator.path:
        return Finding(name, purpose, "absent", advice="unknown without QEMU")
    problem = kvm_problem()
    if problem:
        return Finding(name, purpose, "absent", advice=f"{problem}; guests are emulated instead")
    return Finding(name, purpose, "ok", path=str(DEVICE))


def linux_packages() -> Finding:
    """Returns the finding of the kernel and the programs of guests."""
    from schedlab.machines.linux import packages

    name, purpose = "Linux kernel", "for guests, with their programs"
    stored = packages.cached_packages()
    if stored:
        return Finding(
            name, purpose, "ok", stored.kernel.release, str(stored.tree), "schedlab's cache"
        )
    if packages.read_pins():
        advice = "its files are damaged: the next run on Linux fetches them again"
        return Finding(name, purpose, "unfit", path=str(packages.folder()), advice=advice)
    advice = (
        f"nothing: the first run on Linux fetches them ({packages.MEGABYTES} MB, pinned by hash)"
    )
    return Finding(name, purpose, "absent", advice=advice)


def machine(name: str, purpose: str, find: Callable[[], Any]) -> Finding:
    try:
        release = find()
    except SchedlabError as error:
        path = shutil.which(name) or ""
        return Finding(name, purpose, "unfit" if path else "missing", path=path, advice=str(error))
    return Finding(name, purpose, "ok", release.version, release.path, release.origin)


def git() -> Finding:
    finding = examine_program("git", "names the commit in results", "install git")
    return finding if finding.status == "ok" else replace(finding, status="absent")


def recorders() -> Iterator[Finding]:
    """Yields the readers of perf and ftrace recordings, which only imports need."""
    for tool in (PERF, TRACE_CMD):
        purpose = f"reads {tool.file} for import"
        path = tool.find()
        if path:
            number = version(tool).partition(" ")[2]
            yield Finding(tool.program, purpose, "ok", number, path, "PATH")
        else:
            yield Finding(tool.program, purpose, "absent", advice=cure([tool.program]))


def name_packages(findings: list[Finding]) -> list[Finding]:
    """Adds to each program on the PATH the Debian package that owns it, if there is one."""
    paths = {f.path for f in findings if f.path and f.origin in ("PATH", "")}
    owners = owning_packages(paths)
    return [
        replace(f, origin=f"Debian package {owners[f.path]}")
        if f.path in owners and f.origin in ("PATH", "")
        else f
        for f in findings
    ]


def owning_packages(paths: set[str]) -> dict[str, str]:
    """Maps paths to packages, for the paths that dpkg knows."""
    if not paths or not shutil.which("dpkg-query"):
        return {}
    path_by_real = {str(Path(path).resolve()): path for path in paths}
    path_by_real.update({path: path for path in paths})
    done = subprocess.run(
        ["dpkg-query", "--search", *path_by_real],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    owners: dict[str, str] = {}
    for line in done.stdout.splitlines():
        packages, separator, path = line.rpartition(": ")
        if separator and path in path_by_real:
            owners[path_by_real[path]] = packages.partition(",")[0].partition(":")[0]
    return owners


def as_dict(findings: list[Finding]) -> dict[str, Any]:
    """Returns the findings for JSON."""
    return {
        "healthy": all(finding.healthy for finding in findings),
        "checkout": str(ROOT),
        "dependencies": [asdict(finding) for finding in findings],
    }


@click.command()
@click.option(
    "--install",
    "installs",
    is_flag=True,
    help="First fetch the libraries of all commands and, as root, install missing programs with apt.",
)
@json_option
def doctor(installs: bool, as_json: bool) -> None:
    """List what schedlab needs, and what to do about missing parts.

    Exit status 1 if something is missing that runs and reports need, or if something is unfit.
    """
    if installs:
        need_extra(*(extra for extra in EXTRAS if extra != "test"))
        need_if_installed("system-compiler", "qemu", *LINUX_GUEST, "sandbox", "sanitizers")
    findings = examine()
    if as_json:
        echo_json(as_dict(findings))
    else:
        results().print(doctor_table(findings))
        for finding in findings:
            if finding.advice:
                say(f"{finding.name}: {finding.advice}")
    if not all(finding.healthy for finding in findings):
        raise SystemExit(1)


def doctor_table(findings: list[Finding]) -> Table:
    table = new_table("", "what", "for", "state", "version", "where from", fold=True)
    for finding in findings:
        origin = f"{finding.path}\n{finding.origin}".strip()
        table.add_row(finding.name, finding.purpose, finding.status, finding.version, origin)
    return table
