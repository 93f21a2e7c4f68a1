# SPDX-License-Identifier: MIT
"""The Debian packages that the guest is made of: found once, pinned, checked, kept in the cache.

Nothing is installed on the host. What is there needs no network again; `forget()` makes the next
start look for newer ones.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from schedlab.errors import MachineUnfit
from schedlab.linux import apt, elf, mirror
from schedlab.linux.apt import Package, PrivateApt
from schedlab.linux.kernel import Kernel, config_problem, kernel_in
from schedlab.paths import cache_folder

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

_FORMAT = 1
Pins = dict[str, list[Package]]
"""By group: kernel, sdk, programs."""


@dataclass(frozen=True)
class Packages:
    """What is unpacked, and where."""

    kernel: Kernel
    sdk: Path
    """Headers, static libraries and vmlinux.h: make's LINUX_SDK."""
    programs: Path
    pins: Pins


def folder() -> Path:
    """Where all of it is kept."""
    return cache_folder() / "linux"


@cache
def packages() -> Packages:
    """All that is needed, fetched if it is not there yet. MachineUnfit says what stands against it."""
    found = kept()
    if found:
        return found
    with alone(folder()):
        return kept() or made_anew()


def kept() -> Packages | None:
    """What an earlier start has left, if it is whole."""
    pins = read_pins()
    if pins is None:
        return None
    tree = tree_of(pins)
    if not is_whole(tree):
        return None
    return opened(tree, pins)


def opened(tree: Path, pins: Pins) -> Packages:
    return Packages(kernel_in(tree / "kernel"), tree / "sdk", tree / "programs", pins)


def forget() -> None:
    """Lets the next start find the newest packages."""
    lock_file().unlink(missing_ok=True)
    packages.cache_clear()


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """One at a time: what another start has begun is finished, and then serves this one, too."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for remains in place.glob("fetch-*"):  # of a start that was killed
            shutil.rmtree(remains, ignore_errors=True)
        yield


# --- pins -----------------------------------------------------------------------------------------


def lock_file() -> Path:
    return folder() / "packages.lock.json"


def read_pins() -> Pins | None:
    """None if there are none that can be read: then they are found anew."""
    try:
        content = json.loads(lock_file().read_text())
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
        group: [{k: v for k, v in asdict(each).items() if k != "depends"} for each in entries]
        for group, entries in pins.items()
    }
    text = json.dumps({"format": _FORMAT, "groups": groups}, indent=2)
    replace(lock_file(), f"{text}\n".encode())


def replace(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="fetch-", delete=False) as new:
        new.write(content)
    Path(new.name).replace(path)


def tree_of(pins: Pins) -> Path:
    """Where these packages are unpacked."""
    listed = [f"{group} {each.sha256}" for group in sorted(pins) for each in pins[group]]
    return folder() / "trees" / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


# --- a tree that is whole -------------------------------------------------------------------------

_SUMS = "sums.json"


def write_sums(tree: Path) -> None:
    sums = {str(path.relative_to(tree)): file_sum(path) for path in files_of(tree)}
    (tree / _SUMS).write_text(json.dumps(sums))


def is_whole(tree: Path) -> bool:
    """Each file is there and as it was unpacked."""
    try:
        sums: dict[str, str] = json.loads((tree / _SUMS).read_text())
        return all(file_sum(tree / name) == digest for name, digest in sums.items())
    except (OSError, ValueError):
        return False


def files_of(tree: Path) -> list[Path]:
    return sorted(p for p in tree.rglob("*") if p.is_file() and not p.is_symlink())


def file_sum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# --- finding and fetching -------------------------------------------------------------------------


def made_anew() -> Packages:
    """Finds, fetches, checks, unpacks and pins."""
    apt.need_programs()
    need_keyring()
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
    """From one mirror, by way of a folder that is thrown away."""
    say("finding the guest's packages (once)")
    of_kernel = PrivateApt(scratch / "kernel-apt", address, [KERNEL_SUITE])
    of_programs = PrivateApt(scratch / "program-apt", address, [PROGRAM_SUITE, NEWER_SUITE])
    of_kernel.update()
    of_programs.update()
    store = Store(scratch)
    pins: Pins = {
        "kernel": fetch_kernel(of_kernel, store),
        "sdk": fetch_sdk(of_kernel, of_programs, store),
        "programs": fetch_programs(of_programs, store),
    }
    tree = tree_of(pins)
    new = scratch / "tree"
    for group, entries in pins.items():
        for package in entries:
            store.unpack(package, new / group)
    kernel_in(new / "kernel").unpack()
    write_sums(new)
    shutil.rmtree(folder() / "trees", ignore_errors=True)
    tree.parent.mkdir()
    new.rename(tree)
    write_pins(pins)
    return opened(tree, pins)


def fetch_kernel(source: PrivateApt, store: Store) -> list[Package]:
    """The newest one that can do what is needed, with the package that has its configuration."""
    names = source.names(_KERNEL)
    problems = []
    for package in apt.newest_first(source.describe(names)) if names else ():
        companions = [name for name in names_in(package.depends) if name.startswith("linux-base-")]
        entries = [package, *(source.describe(companions) if companions else ())]
        tree = store.tree(source, entries)
        problem = config_problem(kernel_in(tree).config_text())
        if not problem:
            return entries
        problems.append(f"{package.name}: {problem}")
    told = "; ".join(problems) or f"none is called {_KERNEL}"
    raise MachineUnfit(
        f"the suite {KERNEL_SUITE} has no kernel that serves ({told}); --kernel PATH names one"
    )


def fetch_sdk(of_kernel: PrivateApt, of_programs: PrivateApt, store: Store) -> list[Package]:
    """What the loader and the BPF programs are compiled with."""
    entries = of_kernel.describe(_SDK_OF_KERNEL)
    store.fetch(of_kernel, entries)
    others = of_programs.describe(_SDK)
    store.fetch(of_programs, others)
    return [*entries, *others]


def fetch_programs(source: PrivateApt, store: Store) -> list[Package]:
    """The programs, and of all that they depend on the packages whose libraries they need."""
    closure = source.closure(PROGRAMS)
    chosen = {name: closure[name] for name in PROGRAMS}
    store.fetch(source, chosen.values())
    asked = [(store.unpacked(closure[name]) / path, name) for name, path in PROGRAMS.items()]
    needs = [(library, "util-linux") for library in _OPENED_AT_RUN_TIME]
    done: set[str] = set()
    while asked or needs:
        for path, owner in asked:
            needs += [(library, owner) for library in elf.needed_libraries([path])[path]]
        asked = []
        for library, owner in needs:
            if library in done:
                continue
            done.add(library)
            provider, path = find_library(library, owner, closure, source, store)
            chosen[provider] = closure[provider]
            asked.append((path, provider))
        needs = []
    return [chosen[name] for name in sorted(chosen)]


def find_library(
    library: str, owner: str, closure: Mapping[str, Package], source: PrivateApt, store: Store
) -> tuple[str, Path]:
    """The package that has it, of those that `owner` depends on: the nearest ones first."""
    level, seen = [owner], {owner}
    while level:
        store.fetch(source, (closure[name] for name in level))
        for name in level:
            for path in store.unpacked(closure[name]).rglob(library):
                if path.exists():
                    return name, path
        following = {each for name in level for each in names_in(closure[name].depends)}
        level = sorted((following & closure.keys()) - seen)
        seen.update(level)
    raise MachineUnfit(f"no package that {owner} depends on has {library}, which it needs")


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
        """Those that are not here yet."""
        missing = [each for each in entries if not self.place(each).exists()]
        if not missing:
            return
        with tempfile.TemporaryDirectory(dir=self.files) as fresh:
            source.download(missing, Path(fresh))
            by_sum = {file_sum(path): path for path in Path(fresh).glob("*.deb")}
            for each in missing:
                if each.sha256 not in by_sum:
                    raise apt.AptFailed(f"{each.name} {each.version} came with another hash")
                by_sum[each.sha256].rename(self.place(each))

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

    def tree(self, source: PrivateApt, entries: list[Package]) -> Path:
        """A folder with the files of all of them."""
        self.fetch(source, entries)
        place = self.places / "-".join(each.sha256[:16] for each in entries)
        for each in entries:
            self.unpack(each, place)
        return place


def say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)
