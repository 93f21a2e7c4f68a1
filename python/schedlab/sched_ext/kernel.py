# SPDX-License-Identifier: MIT
"""The simulated kernel, as schedulers see it: its types, functions, variables, helpers and map types.

All of it is read from the C headers in sim/sched_ext/, which the engine is compiled with.
"""

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import yaml

from schedlab.base.files.atomic import atomic_write
from schedlab.base.toolchain.tools import require_compiler
from schedlab.errors import BuildFailed, WrongUsage, format_parameter
from schedlab.paths import ROOT, cache_folder
from schedlab.sched_ext.btf import VOID, Btf, Type
from schedlab.sched_ext.elf import Elf

HEADERS = ROOT / "sim" / "sched_ext"
PROFILES = {"6.12": 612, "6.18": 618, "7.1": 701}
DEFAULT_PROFILE = "7.1"
BPF_TARGET = ("-target", "bpfel", "-mcpu=v4", "-O2", "-g", "-ffreestanding")

_ENTRY = re.compile(r"\bX\(([^()]*)\)")


@dataclass(frozen=True)
class Function:
    """A function or callback of the kernel."""

    number: int
    first: int
    last: int


@dataclass(frozen=True)
class Kernel:
    """What one kernel version offers: functions, types and enumerators."""

    profile: int
    btf: Btf
    functions: Mapping[str, int]
    """Kernel functions that programs call: name to number."""
    variables: Mapping[str, int]
    """Variables, one per CPU: name to offset."""
    ops: Mapping[str, int]
    """Callbacks of struct sched_ext_ops: name to number."""
    helpers: Mapping[int, str]
    """Helper functions: number to name."""
    map_types: Mapping[int, str]
    """Map types: number to name."""
    digest: str
    """Hash of everything here."""


def _macro_entries(text: str, name: str) -> list[list[str]]:
    match = re.search(rf"^#define {name}\(X\)((?:[^\n]*\\\n)*[^\n]*)$", text, re.MULTILINE)
    if not match:
        raise BuildFailed(f"{HEADERS}: no list {name}")
    return [[word.strip() for word in entry.split(",")] for entry in _ENTRY.findall(match[1])]


@cache
def _read_header(name: str) -> str:
    return (HEADERS / name).read_text()


def _of_profile(name: str, profile: int) -> dict[str, int]:
    """Returns the entries of a list X(name, number, …, first, last) that a profile has."""
    return {
        entry[0]: int(entry[1])
        for entry in _macro_entries(_read_header("kernel_functions.h"), name)
        if int(entry[-2]) <= profile <= int(entry[-1])
    }


def _names_by_number(name: str) -> dict[int, str]:
    return {
        int(number): text
        for text, number in _macro_entries(_read_header("kernel_functions.h"), name)
    }


@cache
def _linux_names() -> dict[str, dict[int, str]]:
    names: dict[str, dict[int, str]] = yaml.safe_load(
        Path(__file__).with_name("linux_names.yaml").read_text()
    )
    return names


def linux_name(kind: str, number: int) -> str:
    """Returns Linux's name of one of its `helpers` or `map_types`."""
    return _linux_names()[kind].get(number, f"number {number}")


def profile_number(name: str) -> int:
    """Returns the number of a kernel profile, such as 612. Raises WrongUsage if it is unknown."""
    if name not in PROFILES:
        raise WrongUsage(
            "unknown kernel profile",
            what=format_parameter("kernel", name),
            fix=f"choose from {', '.join(PROFILES)}",
        )
    return PROFILES[name]


@cache
def kernel_of(profile: str = DEFAULT_PROFILE) -> Kernel:
    """Returns the kernel of a profile. Raises WrongUsage if it is unknown."""
    number = profile_number(profile)
    btf = Btf(_compiled_types())
    _remove_lacking(btf, number)
    headers = ("kernel_functions.h", "kernel_types.h", "image.h")
    digest_input = f"{number}{''.join(map(_read_header, headers))}"
    return Kernel(
        number,
        btf,
        _of_profile("KERNEL_FUNCTIONS", number),
        _of_profile("KERNEL_VARIABLES", number),
        _of_profile("SCHEDULER_OPS", number),
        _names_by_number("HELPER_FUNCTIONS"),
        _names_by_number("MAP_TYPES"),
        hashlib.sha256(digest_input.encode()).hexdigest(),
    )


def all_functions() -> dict[str, Function]:
    """Returns the kernel functions of all versions."""
    return {
        entry[0]: Function(*map(int, entry[1:]))
        for entry in _macro_entries(_read_header("kernel_functions.h"), "KERNEL_FUNCTIONS")
    }


def _remove_lacking(btf: Btf, profile: int) -> None:
    """Removes the types, members and enumerators that a kernel version lacks."""
    for type_name, member, first, last in _macro_entries(
        _read_header("kernel_types.h"), "KERNEL_TYPE_HISTORY"
    ):
        if int(first) <= profile <= int(last):
            continue
        for entry in btf.by_name.get(type_name, ()):
            if not member:
                _replace_type(btf, entry, replace(VOID, id=entry.id))
            else:
                members = tuple(known for known in entry.members if known.name != member)
                _replace_type(btf, btf.type(entry.id), replace(btf.type(entry.id), members=members))
        btf.by_name[type_name] = [
            btf.type(entry.id) for entry in btf.by_name[type_name] if btf.type(entry.id).name
        ]


def _replace_type(btf: Btf, before: Type, after: Type) -> None:
    btf.types[before.id] = after


def _compiled_types() -> bytes:
    """Returns the BTF of sim/sched_ext/kernel_types.h, from the cache if it was compiled before."""
    command = (*require_compiler().clang, *BPF_TARGET)
    sources = (
        _read_header("kernel_types.h") + _read_header("kernel_functions.h") + " ".join(command)
    )
    name = hashlib.sha256(sources.encode()).hexdigest()[:16]
    cached = cache_folder() / "sched_ext" / f"{name}.btf"
    if cached.is_file():
        return cached.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder) / "types.o"
        compile_for_bpf(HEADERS / "kernel_types.h", compiled)
        content = Elf(compiled.read_bytes()).need(".BTF", "compile with -g").data
    cached.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(cached) as new:
        new.write_bytes(content)
    return content


def compile_for_bpf(source: Path, target: Path, options: Iterable[str] = ()) -> None:
    """Compiles a C file to a BPF object. Raises BuildFailed with the compiler's messages."""
    # Debug information names no folder of this host.
    path_options = (f"-ffile-prefix-map={source.parent}=.", "-fdebug-compilation-dir=.")
    files = ("-x", "c", "-c", str(source), "-o", str(target))
    result = subprocess.run(
        [*require_compiler().clang, *BPF_TARGET, *path_options, *options, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise BuildFailed(f"{source}: {result.stderr.strip()[-4000:]}")
