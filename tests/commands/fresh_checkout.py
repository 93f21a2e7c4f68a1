# SPDX-License-Identifier: MIT
"""Makes checkouts without earlier commands, and a compiler that returns earlier results."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from conftest import ROOT
from schedlab.base.toolchain.tools import require_compiler, require_system_compiler
from schedlab.paths import BUILD_FOLDER

# Copies earlier results from this checkout instead of compiling the same sources again.
_COMPILER = """#!/bin/sh
for word; do
    [ "${previous:-}" != -o ] || made=$word
    previous=$word
done
case ${made:-} in
build/*) if [ -e "@BUILT@/${made#build/}" ]; then exec cp "@BUILT@/${made#build/}" "$made"; fi ;;
esac
@REAL@
"""


def committed(path: Path) -> Path:
    """Copies what `git clone` would, plus uncommitted changes. Returns the folder."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name, follow_symlinks=False)
    return path


def fresh_checkout(copied: Path, path: Path) -> Path:
    """Makes a checkout of the files that `committed` copied, and returns its folder.

    Copying all files for each checkout would take longer than most commands.
    """
    shutil.copytree(copied, path, symlinks=True, copy_function=os.link)
    return path


def quick_compiler(folder: Path) -> None:
    """Creates programs with the compilers' names in a folder of the PATH."""
    chosen, system = require_compiler(), require_system_compiler()
    plain, host = shlex.join(chosen.clang), shlex.join(chosen.host)
    real = {
        "clang": f'case "$*" in *--target=*|*--version*|*--print*) exec {plain} "$@" ;; esac\nexec {host} "$@"',
        "ld.lld": f'exec {shlex.join(chosen.linker)} "$@"',
        "wasm-ld": f'exec {shlex.join(chosen.wasm_linker)} "$@"',
        "llvm-ar": f'exec {shlex.join(chosen.archiver)} "$@"',
        **{name: f'exec {shutil.which(name)} "$@"' for name in (system.clang, system.linker)},
    }
    for name, words in real.items():
        program = folder / name
        program.write_text(_COMPILER.replace("@BUILT@", str(BUILD_FOLDER)).replace("@REAL@", words))
        program.chmod(0o755)


def environment_of(folder: Path, **settings: str) -> dict[str, str]:
    """Returns the environment that puts the programs of a folder first, including the compiler."""
    inherited = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return {
        **inherited,
        "PATH": f"{folder}:{os.environ['PATH']}",
        **compiler_of(folder),
        **settings,
    }


def compiler_of(folder: Path) -> dict[str, str]:
    """Returns the setting that selects the compiler of a folder, if quick_compiler() put one
    there."""
    clang = folder / "clang"
    return {"SCHEDLAB_CLANG": str(clang)} if clang.exists() else {}
