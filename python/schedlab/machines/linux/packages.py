# SPDX-License-Identifier: MIT
"""Finds, pins, verifies and caches the Debian packages of the guest.

Nothing is installed on the host, and cached packages need no network. After `forget()`, the next
start searches for newer packages.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from schedlab.base.files.atomic import alone, file_hash, written
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, elf, mirror
from schedlab.machines.linux.apt import Package, PrivateApt
from schedlab.machines.linux.kernel import Kernel, config_problem, kernel_in
from schedlab.paths import cache_folder, shared_cache

KERNEL_SUITE = "trixie-backports"
"""Its kernels have sched_ext and BPF type information; kernels of the releases do not."""

PROGRAM_SUITE, NEWER_SUITE = "bookworm", "bookworm-backports"
"""The oldest supported release, whose static libraries link on newer releases, too."""

_KERNEL = r"linux-binary-\d[\w.+~]*-cloud-amd64"
_SDK_OF_KERNEL = ("linux-bpf-dev",)
_SDK = (
    f"libbpf-dev/{NEWER_SUITE}",
    "libelf-dev",
    "zlib1g-dev",
    "libzstd-dev",
    "libfuse3-dev",
)
PROGRAMS: Mapping[str, str] = {
    "busybox-static": "bin/busybox",
    "util-linux": "usr/bin/chrt",
    "sysbench": "usr/bin/sysbench",
    "stress-ng": "usr/bin/stress-ng",
    "rt-tests": "usr/bin/hackbench",
    "rt-app": "usr/bin/rt-app",
}
"""Packages, and the program that the guest uses of each."""
_OPENED_AT_RUN_TIME = ("libgcc_s.so.1",)
"""The C library loads it when a thread is cancelled; no program names it."""

MEGABYTES = 60
"""Download size, including package lists."""

_FORMAT = 1
Pins = dict[str, list[Package]]
"""Packages by group: kernel, sdk, programs."""


@dataclass(frozen=True)
class Packages:
    """The unpacked packages and their folder."""

    tree: Path
    """Its name is a hash of its packages."""
    pins: Pins
    sums: Mapping[str, str]
    """SHA-256 of each file, by its path in the tree."""
    needs: Mapping[str, list[str]]
    """File names of the libraries that each program needs, directly or indirectly."""

    @property
    def kernel(self) -> Kernel:
        return kernel_in(self.tree / "kernel")

    @property
    def sdk(self) -> Path:
        """Headers, static libraries and vmlinux.h: make's LINUX_SDK."""
        return self.tree / "sdk"

    def program(self, name: str) -> Path:
        return self.tree / "programs" / name

    def library(self, name: str) -> Path:
        return self.tree / "libraries" / name


def folder() -> Path:
    """Returns the cache folder of all packages."""
    return cache_folder() / "linux"


@cache
def packages() -> Packages:
    """Returns the packages and fetches them if necessary.

    Raises MachineUnfit with the reason if it fails.
    """
    stored = cached_packages()
    if stored:
        return stored
    with alone(folder()):
        return cached_packages() or rebuild_packages(read_pins())


def cached_packages() -> Packages | None:
    """Returns the packages of this cache or of a shared cache; None if neither is complete."""
    shared = shared_cache()
    for place in (folder(), *((shared / "linux",) if shared else ())):
        pins = read_pins(place)
        opened_packages = opened(tree_of(pins, place), pins) if pins else None
        if opened_packages:
            return opened_packages
    return None


def opened(tree: Path, pins: Pins) -> Packages | None:
    """Returns unpacked packages, or None if a file is missing or has changed."""
    try:
        sums: dict[str, str] = json.loads((tree / _SUMS).read_text())
        if any(file_hash(tree / name) != digest for name, digest in sums.items()):
            return None
        return Packages(tree, pins, sums, json.loads((tree / _NEEDS).read_text()))
    except (OSError, ValueError):
        return None


def forget() -> None:
    """Makes the next start search for newer packages."""
    lock_file().unlink(missing_ok=True)
    packages.cache_clear()


# --- pins -----------------------------------------------------------------------------------------


def lock_file(place: Path | None = None) -> Path:
    return (place or folder()) / "packages.lock.json"


def read_pins(place: Path | None = None) -> Pins | None:
    """Returns the pins, or None if they are missing or unreadable and must be found again."""
    try:
        content = json.loads(lock_file(place).read_text())
        if content["format"] != _FORMAT:
            return None
        return {
            group: [Package(**entry) for entry in entries]
            for group, entries in content["groups"].items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_pins(pins: Pins) -> None:
    groups = {
        group: [{k: v for k, v in asdict(pin).items() if k != "depends"} for pin in entries]
        for group, entries in pins.items()
    }
    text = json.dumps({"format": _FORMAT, "groups": groups}, indent=2)
    with written(lock_file()) as new:
        new.write_text(f"{text}\n")


def tree_of(pins: Pins, place: Path | None = None) -> Path:
    """Returns the folder of these packages."""
    listed = [f"{group} {pin.sha256}" for group in sorted(pins) for pin in pins[group]]
    return (
        (place or folder()) / "trees" / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
    )


_SUMS, _NEEDS = "sums.json", "needs.json"


def write_sums(tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums = {str(path.relative_to(tree)): file_hash(path) for path in files}
    (tree / _SUMS).write_text(json.dumps(sums))


# --- finding and fetching


def rebuild_packages(before: Pins | None) -> Packages:
    """Finds, fetches, verifies, unpacks and pins packages; `before` are the pins of damaged packages."""
    apt.need_programs()
    need_keyring()
    if before:
        say(f"files in {folder()} are damaged or missing: fetching the packages again")
    remade = from_a_mirror()
    if before and versions(before) != versions(remade.pins):
        changed = sorted(versions(remade.pins) - versions(before))
        say(f"packages that changed: {', '.join(changed)}")
    return remade


def versions(pins: Pins) -> set[str]:
    return {f"{pin.name} {pin.version}" for entries in pins.values() for pin in entries}


def from_a_mirror() -> Packages:
    """Returns packages from the first mirror that has all of them. Raises MachineUnfit if none has."""
    problems = []
    for address in mirror.mirrors():
        with tempfile.TemporaryDirectory(dir=folder(), prefix="fetch-") as scratch:
            try:
                return fetch(address, Path(scratch))
            except apt.AptFailed as error:
                problems.append(f"{address}: {error}")
    raise MachineUnfit(
        f"the guest's packages could not be fetched; check the network, or set {mirror.VARIABLE} to another mirror:\n "
        + "\n ".join(problems)
    )


def need_keyring() -> None:
    if not apt.KEYRING.exists():
        raise MachineUnfit(
            f"{apt.KEYRING}: missing, but needed to verify Debian packages; install "
            "the package debian-archive-keyring"
        )


def fetch(address: str, scratch: Path) -> Packages:
    """Fetches packages from one mirror through a temporary folder."""
    say(f"finding the guest's packages (once; about {MEGABYTES} MB)")
    of_kernel = PrivateApt(scratch / "kernel-apt", address, [KERNEL_SUITE])
    of_programs = PrivateApt(scratch / "program-apt", address, [PROGRAM_SUITE, NEWER_SUITE])
    of_kernel.update()
    of_programs.update()
    store = Store(scratch)
    new = scratch / "tree"
    pins: Pins = {
        "kernel": fetch_kernel(of_kernel, store, new / "kernel"),
        "sdk": fetch_sdk(of_kernel, of_programs, store, new / "sdk"),
        "programs": fetch_programs(of_programs, store, new),
    }
    write_sums(new)
    tree = tree_of(pins)
    shutil.rmtree(tree.parent, ignore_errors=True)
    tree.parent.mkdir()
    new.rename(tree)
    write_pins(pins)
    opened_packages = opened(tree, pins)
    if not opened_packages:
        raise MachineUnfit(
            f"{tree}: the unpacked files have changed; check that the disk is not full"
        )
    return opened_packages


def fetch_kernel(source: PrivateApt, store: Store, place: Path) -> list[Package]:
    """Fetches the newest kernel that meets the requirements, and the package with its configuration."""
    names = source.names(_KERNEL)
    problems = []
    for package in apt.newest_first(source.describe(names)) if names else ():
        companions = [name for name in names_in(package.depends) if name.startswith("linux-base-")]
        entries = [package, *(source.describe(companions) if companions else ())]
        store.fetch(source, entries)
        for entry in entries:
            store.unpack(entry, place)
        kernel = kernel_in(place)
        problem = config_problem(kernel.config_text())
        if not problem:
            kernel.unpack()
            return entries
        shutil.rmtree(place)
        problems.append(f"{package.name}: {problem}")
    reason = "; ".join(problems) or f"none is called {_KERNEL}"
    raise MachineUnfit(
        f"the suite {KERNEL_SUITE} has no suitable kernel ({reason})",
        fix="name a kernel with `kernel=PATH`",
    )


def fetch_sdk(
    of_kernel: PrivateApt, of_programs: PrivateApt, store: Store, place: Path
) -> list[Package]:
    """Fetches the packages that the loader and the BPF programs are compiled with."""
    entries = of_kernel.describe(_SDK_OF_KERNEL)
    store.fetch(of_kernel, entries)
    others = of_programs.describe(_SDK)
    store.fetch(of_programs, others)
    for entry in (*entries, *others):
        store.unpack(entry, place)
    shutil.rmtree(place / "usr" / "share", ignore_errors=True)  # manuals
    return [*entries, *others]


def fetch_programs(source: PrivateApt, store: Store, tree: Path) -> list[Package]:
    """Fetches the programs, and those of their dependencies whose libraries they need."""
    search = _Libraries(source, store, source.closure(PROGRAMS))
    search.fetch(PROGRAMS)
    places = {name: tree / name for name in ("programs", "libraries")}
    for place in places.values():
        place.mkdir(parents=True)
    needs = {}
    for name, path in PROGRAMS.items():
        program = search.unpacked(name) / path
        needs[program.name] = sorted(search.all_for(program, name))
        shutil.copy(program, places["programs"])
    for name, library in search.libraries.items():
        shutil.copy(library.path, places["libraries"] / name)
    (tree / _NEEDS).write_text(json.dumps(needs))
    owners = {*PROGRAMS, *(library.owner for library in search.libraries.values())}
    return [search.closure[name] for name in sorted(owners)]


@dataclass(frozen=True)
class _Library:
    owner: str
    path: Path


class _Libraries:
    """Finds libraries in the dependencies of a program's package; fetches no other packages."""

    def __init__(self, source: PrivateApt, store: Store, closure: dict[str, Package]) -> None:
        self.source = source
        self.store = store
        self.closure = closure
        self.libraries: dict[str, _Library] = {}

    def fetch(self, names: Iterable[str]) -> None:
        self.store.fetch(self.source, [self.closure[name] for name in names])

    def unpacked(self, name: str) -> Path:
        return self.store.unpacked(self.closure[name])

    def all_for(self, program: Path, owner: str) -> set[str]:
        """Returns the names of all libraries that a program needs, directly or indirectly."""
        names: set[str] = set()
        pending = [_Library(owner, program)]
        opened = elf.needed_libraries(program) and _OPENED_AT_RUN_TIME
        while pending:
            self.fetch({name for library in pending for name in self.depends(library.owner)})
            fresh: dict[str, str] = dict.fromkeys(opened, owner)
            for library in pending:
                fresh.update((name, library.owner) for name in elf.needed_libraries(library.path))
            pending = [self.one(name, fresh[name]) for name in sorted(fresh.keys() - names)]
            names.update(fresh)
            opened = ()
        return names

    def one(self, name: str, owner: str) -> _Library:
        """Returns a library from the nearest dependency of `owner`."""
        level, seen = [owner], {owner}
        while name not in self.libraries and level:
            self.fetch(level)
            for package in level:
                path = self.file_in(package, name)
                if path:
                    self.libraries[name] = _Library(package, path)
                    break
            level = sorted({library for one in level for library in self.depends(one)} - seen)
            seen.update(level)
        if name not in self.libraries:
            raise MachineUnfit(
                f"no package that {owner} depends on contains {name}, which it needs"
            )
        return self.libraries[name]

    def depends(self, name: str) -> set[str]:
        """Returns the direct dependencies of a package within the closure."""
        return self.closure.keys() & names_in(self.closure[name].depends)

    def file_in(self, package: str, name: str) -> Path | None:
        """Returns a file of a package, or None.

        A link that leads out of the package is skipped, because it would lead to the host's files.
        """
        place = self.unpacked(package).resolve()
        for path in sorted(place.rglob(name)):
            target = path.resolve()
            if target.is_file() and target.is_relative_to(place):
                return target
        return None


def names_in(depends: str) -> list[str]:
    """Returns all packages that a dependency field names, with alternatives, without versions."""
    return [
        part.split()[0].partition(":")[0] for part in re.split(r"[,|]", depends) if part.strip()
    ]


class Store:
    """Fetched packages and their unpacked files."""

    def __init__(self, scratch: Path) -> None:
        self.files = scratch / "files"
        self.places = scratch / "unpacked"
        self.files.mkdir()

    def fetch(self, source: PrivateApt, entries: Iterable[Package]) -> None:
        """Fetches missing packages."""
        missing = [entry for entry in entries if not self.place(entry).exists()]
        if not missing:
            return
        with tempfile.TemporaryDirectory(dir=self.files) as fresh:
            source.download(missing, Path(fresh))
            by_sum = {file_hash(path): path for path in Path(fresh).glob("*.deb")}
            for entry in missing:
                if entry.sha256 not in by_sum:
                    raise apt.AptFailed(f"{entry.name} {entry.version} came with another hash")
                by_sum[entry.sha256].rename(self.place(entry))

    def place(self, package: Package) -> Path:
        return self.files / f"{package.sha256}.deb"

    def unpack(self, package: Package, target: Path) -> None:
        """Unpacks a package into a folder."""
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["dpkg-deb", "--extract", str(self.place(package)), str(target)],
            stdin=subprocess.DEVNULL,
            check=True,
        )

    def unpacked(self, package: Package) -> Path:
        """Returns a folder with the files of this package only."""
        place = self.places / package.sha256
        if not place.exists():
            self.unpack(package, place)
        return place


def say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)
