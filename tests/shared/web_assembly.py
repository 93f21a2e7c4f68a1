# SPDX-License-Identifier: MIT
"""Whether this host can compile the page's module."""

from __future__ import annotations

from pathlib import Path

from schedlab.toolchain.tools import compiler, first_line


def makes_web_assembly() -> bool:
    """Are the C library and the compiler's functions for WebAssembly here?"""
    folder = first_line(compiler().clang, "--print-resource-dir")
    return (
        Path("/usr/include/wasm32-wasi/stdio.h").exists()
        and (Path(folder) / "lib" / "wasi" / "libclang_rt.builtins-wasm32.a").exists()
    )
