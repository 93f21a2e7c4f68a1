# SPDX-License-Identifier: MIT
"""Gets C declarations for cffi from the headers that the C library itself contains.

The headers' text is in the library (sim/declarations.S), so declarations always match its version.
cffi cannot read preprocessor lines. So definitions of whole numbers become enumerators, and other
definitions are omitted.
"""

import os
import re
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from cffi import FFI, CDefError, FFIError

NAME = "libschedlab-sim.so"
CHOICE = "SCHEDLAB_SIMULATOR_LIBRARY"
"""Environment variable with the path of another library, such as one with the user's policy."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINE = re.compile(r"#define[ \t]+(\w+)[ \t]+([^\n]+)")
_NUMBER = re.compile(r"[\s()+*|<-]|\b(?:0x[0-9a-fA-F]+|\d+)(?:[uUlL]*)\b|UINT32_MAX")
_ASSERTION = re.compile(r"_Static_assert\(.*?\);", re.DOTALL)


def declarations(headers: str) -> str:
    """Returns the declarations in C headers, in the form that cffi reads."""
    text = _COMMENT.sub(" ", headers).replace("\\\n", " ")
    text = _ASSERTION.sub("", text)
    constants = []
    for name, value in _DEFINE.findall(text):
        if not _NUMBER.sub("", value).strip():
            number = value.strip().replace("UINT32_MAX", str(2**32 - 1))
            constants.append(f"enum {{ {name} = {number} }};")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([*constants, *lines])


def find() -> Path:
    """Returns the path of the C library.

    It is the library named by CHOICE, or that of the installed package, or that of a checkout, which
    `make` builds. Raises LibraryUnusable.
    """
    if os.environ.get(CHOICE):
        return Path(os.environ[CHOICE])
    folder = Path(__file__).resolve().parent
    checkout = folder.parents[2]
    packaged = folder.parent / "schedlab" / "checkout"
    places = [packaged / "build" / "sim" / NAME, checkout / "build" / "sim" / NAME]
    for place in places:
        if place.exists():
            return place
    cure = "`make simulator`" if (checkout / "sim" / "sim.mk").exists() else "pip install"
    raise LibraryUnusable(f"the simulator's library {places[0]} is missing: {cure} puts it there")


CURE = "install schedlab again, or run `make simulator` in a checkout"


def load(path: str | PathLike[str]) -> tuple[Any, Any]:
    """Returns cffi's two objects for a library: its types and its functions. Raises LibraryUnusable."""
    ffi: Any = FFI()
    ffi.cdef("extern const char simulator_declarations[];")
    try:
        library = ffi.dlopen(fspath(path))
        headers = ffi.string(library.simulator_declarations)
    except (OSError, AttributeError) as error:
        raise LibraryUnusable(
            f"{path} is not a library of the simulator; {CURE}: {error}"
        ) from None
    assert isinstance(headers, bytes)
    try:
        ffi.cdef(declarations(headers.decode()))
    except (CDefError, FFIError) as error:
        raise LibraryUnusable(
            f"the declarations in {path} cannot be read; {CURE}: {error}"
        ) from None
    return ffi, library


class SimulatorError(Exception):
    """The base class of all errors."""


class LibraryUnusable(SimulatorError, ImportError):
    """The C library is missing, or its version differs from this package's version."""


class WorkloadRefused(SimulatorError, ValueError):
    """A workload is wrong: the message names the line."""


class SetupRefused(SimulatorError, ValueError):
    """The machine cannot be created, for example because of an unknown policy, tunable or cost."""


class ActRefused(SimulatorError, ValueError):
    """An action from outside is impossible. The machine is unchanged."""


class RunFailed(SimulatorError, RuntimeError):
    """The run cannot continue, for example because of a deadlock or a full disk."""


class AuditFailed(SimulatorError, AssertionError):
    """A process is lost, duplicated or in two places: a bug in the policy or the simulator."""
