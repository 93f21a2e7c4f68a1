# SPDX-License-Identifier: MIT
"""The Debian packages that the guest is made of: found once, pinned, checked, kept in the cache.

Nothing is installed on the host. What is there needs no network again; `forget()` makes the next
start look for newer ones.
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

from schedlab.base.files.whole import alone, file_hash, written
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, elf, mirror
from schedlab.machines.linux.apt import Package, PrivateApt
from schedlab.machines.linux.kernel import Kernel, config_problem, kernel_in
from schedlab.paths import cache_folder, shared_cache

KERNEL_SUITE = "trixie-backports"
"""Its kernels have sched_ext, and type information for BPF; those of the releases do not."""

PROGRAM_SUITE, NEWER_SUITE = "bookworm", "bookworm-backports"
"""The oldest release that schedlab runs on: its static libraries link on every newer one, too."""

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
"""Package to the program that the guest has of it."""
_OPENED_AT_RUN_TIME = ("libgcc_s.so.1",)
"""The C library opens it when a thread is cancelled; no program names it."""

MEGABYTES = 60
"""Lists of packages included."""

_FORMAT = 1
Pins = dict[str, list[Package]]
"""Packages by group: kernel, sdk, programs."""


@dataclass(frozen=True)
class Packages:
    """What is unpacked, and where."""

    tree: Path
    """Its name stands for what is in it."""
    pins: Pins
    sums: Mapping[str, str]
    """SHA-256 of each file, by its place in the tree."""
    needs: Mapping[str, list[str]]
    """Program to the libraries that it needs, directly or not; by their files' names."""

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
    """Where all of it is kept."""
    return cache_folder() / "linux"


@cache
def packages() -> Packages:
    """All that is needed, fetched if it is not there yet. MachineUnfit says what stands against it."""
    stored = kept()
    if stored:
        return stored
    with alone(folder()):
        return kept() or made_anew(read_pins())


def kept() -> Packages | None:
    """Returns what an earlier start has left, or the cache that is shared has; None if neither is whole."""
    shared = shared_cache()
    for place in (folder(), *((shared / "linux",) if shared else ())):
        pins = read_pins(place)
        opened_packages = opened(tree_of(pins, place), pins) if pins else None
        if opened_packages:
            return opened_packages
    return None


def opened(tree: Path, pins: Pins) -> Packages | None:
    """Returns what is unpacked there, or None if a file is missing or not as it was unpacked."""
    try:
        sums: dict[str, str] = json.loads((tree / _SUMS).read_text())
        if any(file_hash(tree / name) != digest for name, digest in sums.items()):
            return None
        return Packages(tree, pins, sums, json.loads((tree / _NEEDS).read_text()))
    except (OSError, ValueError):
        return None


def forget() -> None:
    """Lets the next start find the newest packages."""
    lock_file().unlink(missing_ok=True)
    packages.cache_clear()


# --- pins -----------------------------------------------------------------------------------------


def lock_file(place: Path | None = None) -> Path:
    return (place or folder()) / "packages.lock.json"


def read_pins(place: Path | None = None) -> Pins | None:
    """Returns the pins, or None if there are none that can be read: then they are found anew."""
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
    """Where these packages are unpacked."""
    listed = [f"{group} {pin.sha256}" for group in sorted(pins) for pin in pins[group]]
    return (
        (place or folder()) / "trees" / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
    )


_SUMS, _NEEDS = "sums.json", "needs.json"


def write_sums(tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums = {str(path.relative_to(tree)): file_hash(path) for path in files}
    (tree / _SUMS).write_text(json.dumps(sums))


# --- finding and fetching -------------------------------------------------------------------------


def made_anew(before: Pins | None) -> Packages:
    """Finds, fetches, checks, unpacks and pins. `before`: what was pinned, and is damaged or gone."""
    apt.need_programs()
    need_keyring()
    if before:
        say(f"files in {folder()} are damaged or gone: the packages are fetched again")
    remade = from_a_mirror()
    if before and versions(before) != versions(remade.pins):
        changed = sorted(versions(remade.pins) - versions(before))
        say(f"other packages than before: {', '.join(changed)}")
    return remade


def versions(pins: Pins) -> set[str]:
    return {f"{pin.name} {pin.version}" for entries in pins.values() for pin in entries}


def from_a_mirror() -> Packages:
    """Packages from the first mirror that has all of them."""
    problems = []
    for address in mirror.mirrors():
        with tempfile.TemporaryDirectory(dir=folder(), prefix="fetch-") as scratch:
            try:
                return fetch(address, Path(scratch))
            except apt.AptFailed as error:
                problems.append(f"{address}: {error}")
    raise MachineUnfit(
        "the guest's packages could not be fetched; name another mirror of Debian in"
        f" {mirror.VARIABLE}, or see to the network:\n  " + "\n  ".join(problems)
    )


def need_keyring() -> None:
    if not apt.KEYRING.exists():
        raise MachineUnfit(
            f"{apt.KEYRING}, which Debian's packages are checked with, is not here: install the"
            " host's package debian-archive-keyring"
        )


def fetch(address: str, scratch: Path) -> Packages:
    """Fetches packages from one mirror, by way of a folder that is thrown away."""
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
            f"what was unpacked into {tree} does not stay as it is: is the disk full?"
        )
    return opened_packages


def fetch_kernel(source: PrivateApt, store: Store, place: Path) -> list[Package]:
    """Fetches the newest kernel that can do what is needed, with the package that has its configuration."""
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
        f"the suite {KERNEL_SUITE} has no kernel that serves ({reason})",
        fix="`kernel=PATH` names one",
    )


def fetch_sdk(
    of_kernel: PrivateApt, of_programs: PrivateApt, store: Store, place: Path
) -> list[Package]:
    """What the loader and the BPF programs are compiled with."""
    entries = of_kernel.describe(_SDK_OF_KERNEL)
    store.fetch(of_kernel, entries)
    others = of_programs.describe(_SDK)
    store.fetch(of_programs, others)
    for entry in (*entries, *others):
        store.unpack(entry, place)
    shutil.rmtree(place / "usr" / "share", ignore_errors=True)  # manuals
    return [*entries, *others]


def fetch_programs(source: PrivateApt, store: Store, tree: Path) -> list[Package]:
    """The programs, and of all that they depend on the packages whose libraries they need."""
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
    for name, library in search.found.items():
        shutil.copy(library.path, places["libraries"] / name)
    (tree / _NEEDS).write_text(json.dumps(needs))
    owners = {*PROGRAMS, *(library.owner for library in search.found.values())}
    return [search.closure[name] for name in sorted(owners)]


@dataclass(frozen=True)
class _Library:
    owner: str
    path: Path


class _Libraries:
    """Finds them in the packages that a program's package depends on, and fetches no others."""

    def __init__(self, source: PrivateApt, store: Store, closure: dict[str, Package]) -> None:
        self.source = source
        self.store = store
        self.closure = closure
        self.found: dict[str, _Library] = {}

    def fetch(self, names: Iterable[str]) -> None:
        self.store.fetch(self.source, [self.closure[name] for name in names])

    def unpacked(self, name: str) -> Path:
        return self.store.unpacked(self.closure[name])

    def all_for(self, program: Path, owner: str) -> set[str]:
        """All that a program needs, and what that needs in turn; by name."""
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
        """The library, from the nearest of the packages that `owner` depends on."""
        level, seen = [owner], {owner}
        while name not in self.found and level:
            self.fetch(level)
            for package in level:
                path = self.file_in(package, name)
                if path:
                    self.found[name] = _Library(package, path)
                    break
            level = sorted({library for one in level for library in self.depends(one)} - seen)
            seen.update(level)
        if name not in self.found:
            raise MachineUnfit(f"no package that {owner} depends on has {name}, which it needs")
        return self.found[name]

    def depends(self, name: str) -> set[str]:
        """The packages of the closure that one names directly."""
        return self.closure.keys() & names_in(self.closure[name].depends)

    def file_in(self, package: str, name: str) -> Path | None:
        """Returns the file of that name, or None if the package has none. A link that leads out of the
        package leads to the host's files: it does not count."""
        place = self.unpacked(package).resolve()
        for path in sorted(place.rglob(name)):
            target = path.resolve()
            if target.is_file() and target.is_relative_to(place):
                return target
        return None


def names_in(depends: str) -> list[str]:
    """All packages that a field names, alternatives too, without their versions."""
    return [
        part.split()[0].partition(":")[0] for part in re.split(r"[,|]", depends) if part.strip()
    ]


class Store:
    """Packages that were fetched, and what is in each."""

    def __init__(self, scratch: Path) -> None:
        self.files = scratch / "files"
        self.places = scratch / "unpacked"
        self.files.mkdir()

    def fetch(self, source: PrivateApt, entries: Iterable[Package]) -> None:
        """Fetches the packages that are not here yet."""
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
        """Puts its files into a folder."""
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["dpkg-deb", "--extract", str(self.place(package)), str(target)],
            stdin=subprocess.DEVNULL,
            check=True,
        )

    def unpacked(self, package: Package) -> Path:
        """A folder with the files of that one alone."""
        place = self.places / package.sha256
        if not place.exists():
            self.unpack(package, place)
        return place


def say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)
