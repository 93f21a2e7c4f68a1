# SPDX-License-Identifier: MIT
"""Generates the layouts of traces and workload files in Python and JavaScript from the headers in abi/.

cffi parses the declarations, as in other Python code that needs C definitions.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cffi import FFI

from schedlab.paths import ROOT
from schedlab_simulator.declarations import declarations
from schedlab_tools.documents.marked_parts import write

PYTHON = ROOT / "python" / "schedlab" / "trace" / "format.py"
WORKLOAD = ROOT / "python" / "schedlab" / "workload" / "format.py"
JAVASCRIPT = ROOT / "python/schedlab/monitor/page/session/definitions.js"

_TRACE = "abi/trace_format.h"
_STRUCTS = {"HEADER": "trace_header", "RECORD": "trace_record"}
_FILE, _STEPS, _WORDS = "abi/workload_file.h", "abi/workload_steps.h", "abi/workload_words.txt"
_WORKLOAD_STRUCTS = {
    "HEADER": (_FILE, "workload_file_header"),
    "PROGRAM": (_FILE, "workload_file_program"),
    "STEP": (_STEPS, "workload_step"),
}
_ENUMERATIONS = (
    ("Kind", _TRACE, "trace_kind", "TRACE_", "Kinds of records"),
    ("LossKind", _TRACE, "trace_loss", "LOSS_", "Kinds of LOST records, in their `first`"),
    ("ProcessState", "abi/process_info.h", "process_state", "PROCESS_", "States of a process"),
    ("BlockReason", "abi/process_info.h", "block_reason", "BLOCK_", "Why a process is blocked"),
    ("PreemptReason", _TRACE, "preempt_reason", "PREEMPT_", "Why a process lost its CPU"),
    ("AttributeKind", _TRACE, "attribute_kind", "ATTRIBUTE_", "Attributes that users set"),
    ("GroupField", _TRACE, "group_field", "GROUP_", "Fields of a task group"),
    (
        "DispatchCallback",
        _TRACE,
        "dispatch_callback",
        "DISPATCH_BY_",
        "The callback that put a process into a dispatch queue, or kicked a CPU",
    ),
    ("KickFlag", _TRACE, "kick_flag", "KICK_", "Flags of a kick"),
    ("MarkKind", "abi/system_calls.h", "mark_kind", "MARK_", "Kinds of marks that programs write"),
)
"""The Python class, the C header and enumeration, the prefix of its members, and its meaning."""
_IN_JAVASCRIPT = ("Kind",)
_BEGIN = "# --- generated from the headers in abi/ by ./schedlab dev docs trace-format\n\n"
_END = "\n\n\n# --- end of the generated part\n"


def python() -> str:
    """Returns the Python module with its definitions regenerated."""
    magic, version = _magic(_TRACE, "TRACE_MAGIC"), _version(_TRACE, "TRACE_VERSION")
    lines = [f'MAGIC = b"{magic}"', f"VERSION = {version}", ""]
    for name, struct in _STRUCTS.items():
        lines += _numpy_type(name, _TRACE, struct)
    for name, header, enumeration, prefix, about in _ENUMERATIONS:
        members = _members(header, enumeration, prefix)
        lines += ["", "", f"class {name}(IntEnum):", f'    """{about} (enum {enumeration})."""', ""]
        lines += [f"    {member} = {value}" for member, value in members]
    before, _, old = PYTHON.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = old.partition(_END)
    return "".join([before, _BEGIN, "\n".join(lines), _END, after])


def workload() -> str:
    """Returns the Python module with the layout of workload files."""
    lines = [
        "# SPDX-License-Identifier: MIT",
        '"""Defines the layout of workload files; generated from abi/ by ./schedlab dev docs trace-format."""',
        "",
        "from __future__ import annotations",
        "",
        "import numpy as np",
        "",
        *(f"{name} = {json.dumps(value)}" for name, value in _workload_constants()),
    ]
    for name, (header, struct) in _WORKLOAD_STRUCTS.items():
        lines += _numpy_type(name, header, struct)
    lines += ["FORMS = ("]
    lines += [f'    ("{words}", {step}),' for words, step in _step_forms()]
    lines += [")", '"""The words of each step, and its kind, detail, target and value."""']
    return "\n".join(lines) + "\n"


def _workload_constants() -> Iterator[tuple[str, str | int]]:
    yield "MAGIC", _magic(_FILE, "WORKLOAD_FILE_MAGIC")
    yield "VERSION", _version(_FILE, "WORKLOAD_FILE_VERSION")
    yield "LOOPS_MAX", _constants().WORKLOAD_LOOPS_MAX
    yield "MARK_NAME", _constants().MARK_NAME


def _step_forms() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the words of a step, and its row. A step with an optional word is yielded without and with it."""
    numbers = _constants()
    for line in _source(_WORDS).splitlines():
        if not line or line.startswith("#"):
            continue
        words, kind, given = (part.strip() for part in re.split(r"(STEP_\w+)", line))
        step = {"detail": "0", "target": "0", "value": "0"} | dict(
            re.findall(r"(\w+)=(\w+)", given)
        )
        fields = (
            int(number) if number.isdigit() else getattr(numbers, number)
            for number in step.values()
        )
        values = (getattr(numbers, kind), *fields)
        written, optional, last = words.removesuffix("]").partition(" [")
        yield written, values
        if optional:
            yield f"{written} {last}", values


def _constants() -> Any:
    ffi = FFI()
    ffi.cdef(
        declarations("".join(_source(header) for header in (_TRACE, _STEPS, "abi/system_calls.h")))
    )
    return ffi.dlopen(None)


def _numpy_type(name: str, header: str, struct: str) -> list[str]:
    """Returns the lines that define a structure as a numpy type."""
    fields = [f'        ("{field}", "{kind}"),' for field, kind, _ in _fields(header, struct)]
    return [f"{name} = np.dtype(", "    [", *fields, "    ]", ")"]


def javascript() -> str:
    """Returns the JavaScript module."""
    lines = [
        "// SPDX-License-Identifier: MIT",
        "//",
        "// Made of the headers in abi/ by ./schedlab dev docs trace-format.",
        "",
    ]
    magic, version = _magic(_TRACE, "TRACE_MAGIC"), _version(_TRACE, "TRACE_VERSION")
    lines += [f'export const MAGIC = "{magic}";', f"export const VERSION = {version};"]
    for name, struct in _STRUCTS.items():
        places = [(field, offset) for field, _, offset in _fields(_TRACE, struct)]
        lines += [f"export const {name}_BYTES = {_size(_TRACE, struct)};"]
        lines += ["", "/** Where each field begins, in bytes. */"]
        lines += [f"export const {name} = Object.freeze({_object(places)});"]
    for name, header, enumeration, prefix, about in _ENUMERATIONS:
        if name in _IN_JAVASCRIPT:
            members = _object(_members(header, enumeration, prefix))
            lines += ["", f"/** {about}. */", f"export const {name} = Object.freeze({members});"]
    places = [(field, offset) for field, _, offset in _fields(*_WORKLOAD_STRUCTS["HEADER"])]
    lines += ["", "/** Where each field of a workload file begins, in bytes. */"]
    lines += [f"export const WORKLOAD = Object.freeze({_object(places)});"]
    for name, value in _workload_constants():
        lines += [f"export const WORKLOAD_{name} = {json.dumps(value)};"]
    lines += ["", "/** What is written, and the step: its kind, detail, target and value. */"]
    forms = "".join(f"    {json.dumps([words, step])},\n" for words, step in _step_forms())
    lines += [f"export const WORKLOAD_FORMS = Object.freeze([\n{forms}]);"]
    return "\n".join(lines) + "\n"


def _object(members: Iterable[tuple[str, int]]) -> str:
    """Returns a JavaScript object with these members."""
    return "{\n" + "".join(f"    {name}: {value},\n" for name, value in members) + "}"


def _source(header: str) -> str:
    return (ROOT / header).read_text(encoding="utf-8")


def _version(header: str, name: str) -> int:
    (version,) = re.findall(rf"#define {name} (\d+)", _source(header))
    return int(version)


def _magic(header: str, name: str) -> str:
    """Returns the bytes that begin a file, as a header defines them."""
    (magic,) = re.findall(rf"#define {name}\s+0x(\w{{16}})ull", _source(header))
    return bytes.fromhex(magic)[::-1].decode()


def _declared(header: str, keyword: str, name: str) -> tuple[Any, FFI]:
    """Returns cffi's type of a declaration, and the FFI object."""
    (declaration,) = re.findall(
        rf"^{keyword} {name} {{.*?^}};", _source(header), re.DOTALL | re.MULTILINE
    )
    ffi = FFI()
    ffi.cdef(re.sub(r"/\*.*?\*/", "", declaration, flags=re.DOTALL))
    return ffi.typeof(f"{keyword} {name}"), ffi


def _members(header: str, enumeration: str, prefix: str) -> list[tuple[str, int]]:
    """Returns the members of an enumeration without their prefix, with their values."""
    kind, _ = _declared(header, "enum", enumeration)
    numbers: dict[str, int] = kind.relements
    by_number = sorted(numbers.items(), key=lambda member: member[1])
    return [(name.removeprefix(prefix), value) for name, value in by_number]


def _fields(header: str, struct: str) -> Iterator[tuple[str, str, int]]:
    """Yields each field's name, numpy type and offset."""
    kind, ffi = _declared(header, "struct", struct)
    for name, field in kind.fields:
        size = ffi.sizeof(field.type)
        if name == "magic":
            yield name, f"S{size}", field.offset
        else:
            yield name, f"V{size}" if field.type.kind == "array" else f"<u{size}", field.offset


def _size(header: str, struct: str) -> int:
    """Returns the size of a structure in bytes."""
    kind, ffi = _declared(header, "struct", struct)
    return int(ffi.sizeof(kind))


FILES: dict[Path, Callable[[], str]] = {
    PYTHON: python,
    WORKLOAD: workload,
    JAVASCRIPT: javascript,
}


def make() -> None:
    """Writes all generated files."""
    for file, text in FILES.items():
        write(file, text())
