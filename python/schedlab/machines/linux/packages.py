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
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import atomic_write, file_hash, lock_folder
from schedlab.errors import MachineUnfit
from schedlab.machines.linux import apt, elf, mirror
from schedlab.machines.linux.apt import Package, PrivateApt
from schedlab.machines.linux.kernel import Kernel, config_problem, find_kernel
from schedlab.paths import cache_folder, shared_cache

KERNEL_SUITE = "trixie-backports"
"""Debian suite of the kernels, which have sched_ext and BPF type information; other suites' lack them."""

PROGRAM_SUITE, NEWER_SUITE = "bookworm", "bookworm-backports"
"""Debian's oldest supported release, whose static libraries also link on newer releases; its backports."""

_KERNEL = r"linux-binary-\d[\w.+~]*-cloud-amd64"
_SDK_OF_KERNEL = ("linux-bpf-dev",)
"""Packages of headers that match the kernel."""
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
"""Libraries that no program names. The C library loads this one when a thread is cancelled."""

MEGABYTES = 60
"""Download size, including package lists."""

_FORMAT = 1
Pins = dict[str, list[Package]]
"""Packages by group: kernel, sdk, programs."""


@dataclass(frozen=True)
class Packages:
    """The unpacked packages of the guest."""

    tree: Path
    """The folder of all files. Its name is a hash of the packages."""
    pins: Pins
    sums: Mapping[str, str]
    """SHA-256 of each file, by its path in the tree."""
    needs: Mapping[str, list[str]]
    """File names of the libraries that each program needs, directly or indirectly."""

    @property
    def kernel(self) -> Kernel:
        return find_kernel(self.tree / "kernel")

    @property
    def sdk(self) -> Path:
        """Headers, static libraries and vmlinux.h, as make's variable LINUX_SDK."""
        return self.tree / "sdk"

    def program(self, name: str) -> Path:
        return self.tree / "programs" / name

    def library(self, name: str) -> Path:
        return self.tree / "libraries" / name


def packages_folder() -> Path:
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
    with lock_folder(packages_folder()):
        return cached_packages() or rebuild_packages(read_pins())


def cached_packages() -> Packages | None:
    """Returns the packages in this user's cache or in a shared cache; None if neither is complete."""
    shared = shared_cache()
    for place in (packages_folder(), *((shared / "linux",) if shared else ())):
        pins = read_pins(place)
        opened_packages = open_unpacked_tree(tree_folder(pins, place), pins) if pins else None
        if opened_packages:
            return opened_packages
    return None


def open_unpacked_tree(tree: Path, pins: Pins) -> Packages | None:
    """Returns the unpacked packages, or None if a file is missing or was changed."""
    try:
        sums: dict[str, str] = json.loads((tree / _SUMS).read_text())
        if any(file_hash(tree / name) != digest for name, digest in sums.items()):
            return None
        return Packages(tree, pins, sums, json.loads((tree / _NEEDS).read_text()))
    except (OSError, ValueError):
        return None


# --- pins -----------------------------------------------------------------------------------------


def lock_file(path: Path | None = None) -> Path:
    return (path or packages_folder()) / "packages.lock.json"


def read_pins(path: Path | None = None) -> Pins | None:
    """Returns the pinned versions, or None if they must be determined again (no file, or unreadable)."""
    try:
        content = json.loads(lock_file(path).read_text())
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
    with atomic_write(lock_file()) as new:
        new.write_text(f"{text}\n")


def tree_folder(pins: Pins, path: Path | None = None) -> Path:
    """Returns the folder of these packages."""
    listed = [f"{group} {pin.sha256}" for group in sorted(pins) for pin in pins[group]]
    return (
        (path or packages_folder())
        / "trees"
        / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
    )


_SUMS, _NEEDS = "sums.json", "needs.json"


def write_hashes(tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    sums = {str(path.relative_to(tree)): file_hash(path) for path in files}
    (tree / _SUMS).write_text(json.dumps(sums))


# --- finding and fetching


def rebuild_packages(damaged_pins: Pins | None) -> Packages:
    """Finds, fetches, verifies, unpacks and pins the packages.

    `damaged_pins`: the pins of packages that were found damaged, if any, to report changes.
    """
    apt.require_apt_programs()
    require_keyring()
    if damaged_pins:
        say(
            f"schedlab: files in {packages_folder()} are damaged or missing: fetching the packages again"
        )
    rebuilt = fetch_from_mirrors()
    if damaged_pins and pinned_versions(damaged_pins) != pinned_versions(rebuilt.pins):
        changed = sorted(pinned_versions(rebuilt.pins) - pinned_versions(damaged_pins))
        say(f"schedlab: packages that changed: {', '.join(changed)}")
    return rebuilt


def pinned_versions(pins: Pins) -> set[str]:
    return {f"{pin.name} {pin.version}" for entries in pins.values() for pin in entries}


def fetch_from_mirrors() -> Packages:
    """Returns packages from the first mirror that has all of them. Raises MachineUnfit if none has."""
    problems = []
    for address in mirror.list_mirrors():
        with tempfile.TemporaryDirectory(dir=packages_folder(), prefix="fetch-") as scratch:
            try:
                return fetch_from_mirror(address, Path(scratch))
            except apt.AptFailed as error:
                problems.append(f"{address}: {error}")
    raise MachineUnfit(
        "the guest's packages could not be fetched; check the network, or set"
        f" {mirror.MIRROR_VARIABLE} to another mirror:\n " + "\n ".join(problems)
    )


def require_keyring() -> None:
    if not apt.KEYRING.exists():
        raise MachineUnfit(
            f"{apt.KEYRING}: missing, but needed to verify Debian packages; install "
            "the package debian-archive-keyring"
        )


def fetch_from_mirror(address: str, scratch: Path) -> Packages:
    """Fetches packages from one mirror through a temporary folder."""
    say(f"schedlab: finding the guest's packages (once; about {MEGABYTES} MB)")
    kernel_apt = PrivateApt(scratch / "kernel-apt", address, [KERNEL_SUITE])
    program_apt = PrivateApt(scratch / "program-apt", address, [PROGRAM_SUITE, NEWER_SUITE])
    kernel_apt.update()
    program_apt.update()
    store = Store(scratch)
    new = scratch / "tree"
    pins: Pins = {
        "kernel": fetch_kernel(kernel_apt, store, new / "kernel"),
        "sdk": fetch_sdk(kernel_apt, program_apt, store, new / "sdk"),
        "programs": fetch_programs(program_apt, store, new),
    }
    write_hashes(new)
    tree = tree_folder(pins)
    shutil.rmtree(tree.parent, ignore_errors=True)
    tree.parent.mkdir()
    new.rename(tree)
    write_pins(pins)
    opened_packages = open_unpacked_tree(tree, pins)
    if not opened_packages:
        raise MachineUnfit(
            f"{tree}: the unpacked files have changed; check that the disk is not full, and repeat"
            " the command"
        )
    return opened_packages


def fetch_kernel(source: PrivateApt, store: Store, path: Path) -> list[Package]:
    """Fetches the newest kernel that meets the requirements, and the package with its configuration."""
    names = source.names(_KERNEL)
    problems = []
    for package in apt.newest_first(source.describe(names)) if names else ():
        companions = [
            name
            for name in parse_dependency_names(package.depends)
            if name.startswith("linux-base-")
        ]
        entries = [package, *(source.describe(companions) if companions else ())]
        store.fetch(source, entries)
        for entry in entries:
            store.unpack(entry, path)
        kernel = find_kernel(path)
        problem = config_problem(kernel.config_text())
        if not problem:
            kernel.unpack()
            return entries
        shutil.rmtree(path)
        problems.append(f"{package.name}: {problem}")
    reason = "; ".join(problems) or f"none is called {_KERNEL}"
    raise MachineUnfit(
        f"the suite {KERNEL_SUITE} has no suitable kernel ({reason})",
        fix="name a kernel with `kernel=PATH`",
    )


def fetch_sdk(
    kernel_apt: PrivateApt, program_apt: PrivateApt, store: Store, path: Path
) -> list[Package]:
    """Fetches the packages that the loader and the BPF programs are compiled with."""
    entries = kernel_apt.describe(_SDK_OF_KERNEL)
    store.fetch(kernel_apt, entries)
    others = program_apt.describe(_SDK)
    store.fetch(program_apt, others)
    for entry in (*entries, *others):
        store.unpack(entry, path)
    shutil.rmtree(path / "usr" / "share", ignore_errors=True)  # manuals
    return [*entries, *others]


def fetch_programs(source: PrivateApt, store: Store, tree: Path) -> list[Package]:
    """Fetches the guest's programs, and those dependencies whose libraries the programs need."""
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
    """Finds libraries among a package's dependencies, and fetches no package that is not needed."""

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
        """Returns a library from the nearest package that `owner` depends on."""
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
                f"the mirror's packages lack {name}, which {owner} needs; set the environment variable"
                f" {mirror.MIRROR_VARIABLE} to the address of another Debian mirror"
            )
        return self.libraries[name]

    def depends(self, name: str) -> set[str]:
        """Returns the direct dependencies of a package, among the packages of the closure."""
        return self.closure.keys() & parse_dependency_names(self.closure[name].depends)

    def file_in(self, package: str, name: str) -> Path | None:
        """Returns the path of a file of a package, or None.

        Skips links that lead out of the package, because they would lead to files of the host.
        """
        place = self.unpacked(package).resolve()
        for path in sorted(place.rglob(name)):
            target = path.resolve()
            if target.is_file() and target.is_relative_to(place):
                return target
        return None


def parse_dependency_names(depends: str) -> list[str]:
    """Returns all package names in a dependency field, including alternatives, without versions."""
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
                    raise apt.AptFailed(
                        f"{entry.name} {entry.version} came with another hash than its mirror lists"
                    )
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
