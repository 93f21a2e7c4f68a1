# SPDX-License-Identifier: MIT
"""The layout and the enumerations of a trace, in Python and JavaScript: made of the headers in abi/.

cffi reads the declarations: it is what Python code that is to know C's uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cffi import FFI

from schedlab.paths import ROOT
from schedlab_tools.documents.marked import write

PYTHON = ROOT / "python" / "schedlab" / "trace" / "format.py"
JAVASCRIPT = ROOT / "python/schedlab/monitor/page/session/definitions.js"

_TRACE = "abi/trace_format.h"
_STRUCTS = {"HEADER": "trace_header", "RECORD": "trace_record"}
_ENUMERATIONS = (
    ("Kind", _TRACE, "trace_kind", "TRACE_", "What a record says"),
    ("LossKind", _TRACE, "trace_loss", "LOSS_", "What a LOST says, as its `first`"),
    ("ProcessState", "abi/process_info.h", "process_state", "PROCESS_", "What a process does"),
    ("BlockReason", "abi/process_info.h", "block_reason", "BLOCK_", "Why a process is blocked"),
    ("PreemptReason", _TRACE, "preempt_reason", "PREEMPT_", "Why a process lost its CPU"),
    ("AttributeKind", _TRACE, "attribute_kind", "ATTRIBUTE_", "What a user set of a process"),
    ("GroupField", _TRACE, "group_field", "GROUP_", "What a group of tasks has beside its number"),
    ("MarkKind", "abi/system_calls.h", "mark_kind", "MARK_", "What a program wrote into the trace"),
)
"""The class in Python, the header and the enumeration in C, what its members begin with there, and what it tells."""
_IN_JAVASCRIPT = ("Kind",)
_BEGIN = "# --- made of the headers in abi/ by ./schedlab dev docs trace-format\n\n"
_END = "\n\n\n# --- end of what is made\n"


def python() -> str:
    """Returns the module of Python with its definitions made anew."""
    lines = [f'MAGIC = b"{_magic()}"', f"VERSION = {_version()}", ""]
    for name, struct in _STRUCTS.items():
        fields = [f'        ("{field}", "{kind}"),' for field, kind, _ in _fields(struct)]
        lines += [f"{name} = np.dtype(", "    [", *fields, "    ]", ")"]
    for name, header, enumeration, prefix, about in _ENUMERATIONS:
        members = _members(header, enumeration, prefix)
        lines += ["", "", f"class {name}(IntEnum):", f'    """{about} (enum {enumeration})."""', ""]
        lines += [f"    {member} = {value}" for member, value in members]
    before, _, old = PYTHON.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = old.partition(_END)
    return "".join([before, _BEGIN, "\n".join(lines), _END, after])


def javascript() -> str:
    """Returns the module of JavaScript."""
    lines = [
        "// SPDX-License-Identifier: MIT",
        "//",
        "// Made of the headers in abi/ by ./schedlab dev docs trace-format.",
        "",
    ]
    lines += [f'export const MAGIC = "{_magic()}";', f"export const VERSION = {_version()};"]
    for name, struct in _STRUCTS.items():
        places = [(field, offset) for field, _, offset in _fields(struct)]
        lines += [f"export const {name}_BYTES = {_size(struct)};"]
        lines += ["", "/** Where each field begins, in bytes. */"]
        lines += [f"export const {name} = Object.freeze({_object(places)});"]
    for name, header, enumeration, prefix, about in _ENUMERATIONS:
        if name in _IN_JAVASCRIPT:
            members = _object(_members(header, enumeration, prefix))
            lines += ["", f"/** {about}. */", f"export const {name} = Object.freeze({members});"]
    return "\n".join(lines) + "\n"


def _object(members: Iterable[tuple[str, int]]) -> str:
    return "{\n" + "".join(f"    {name}: {value},\n" for name, value in members) + "}"


def _source(header: str) -> str:
    return (ROOT / header).read_text(encoding="utf-8")


def _version() -> int:
    (found,) = re.findall(r"#define TRACE_VERSION (\d+)", _source(_TRACE))
    return int(found)


def _magic() -> str:
    (found,) = re.findall(r"#define TRACE_MAGIC\s+0x(\w{16})ull", _source(_TRACE))
    return bytes.fromhex(found)[::-1].decode()


def _declared(header: str, what: str, name: str) -> tuple[Any, FFI]:
    """Returns the type that cffi makes of a declaration, and the reader of it."""
    (declaration,) = re.findall(
        rf"^{what} {name} {{.*?^}};", _source(header), re.DOTALL | re.MULTILINE
    )
    ffi = FFI()
    ffi.cdef(re.sub(r"/\*.*?\*/", "", declaration, flags=re.DOTALL))
    return ffi.typeof(f"{what} {name}"), ffi


def _members(header: str, enumeration: str, prefix: str) -> list[tuple[str, int]]:
    kind, _ = _declared(header, "enum", enumeration)
    numbers: dict[str, int] = kind.relements
    by_number = sorted(numbers.items(), key=lambda each: each[1])
    return [(name.removeprefix(prefix), value) for name, value in by_number]


def _fields(struct: str) -> Iterator[tuple[str, str, int]]:
    """Yields each field's name, its type in numpy's words, and where it begins."""
    kind, ffi = _declared(_TRACE, "struct", struct)
    for name, field in kind.fields:
        size = ffi.sizeof(field.type)
        if name == "magic":
            yield name, f"S{size}", field.offset
        else:
            yield name, f"V{size}" if field.type.kind == "array" else f"<u{size}", field.offset


def _size(struct: str) -> int:
    kind, ffi = _declared(_TRACE, "struct", struct)
    return int(ffi.sizeof(kind))


FILES: dict[Path, Callable[[], str]] = {PYTHON: python, JAVASCRIPT: javascript}


def make() -> None:
    """Writes both files."""
    for file, text in FILES.items():
        write(file, text())
