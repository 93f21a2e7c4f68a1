# SPDX-License-Identifier: MIT
"""Reads recordings with the tools that wrote them.

`perf script` and `trace-cmd report` support every version, byte order and compression of their
files, and the kernel's event descriptions in them. Perfetto traces are read with the classes of
Perfetto's Python package.
"""

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version as package_version
from pathlib import Path

from schedlab.base.files.compressed import open_unpacked
from schedlab.base.toolchain.tools import run_captured
from schedlab.errors import MachineUnfit, WrongUsage
from schedlab.recordings.coverage import Coverage, coverage_of
from schedlab.recordings.events import Events, Switch, Wakeup
from schedlab.recordings.text import as_ftrace, is_babeltrace, parse

RECORD_WITH = (
    "record it with `perf sched record -- COMMAND`, or `trace-cmd record -e sched COMMAND`"
)
_PERF_MAGIC = (b"PERFILE2", b"2ELIFREP")
"""First bytes of perf's files; the second is for files in the other byte order."""
_TRACE_CMD_MAGIC = b"\x17\x08\x44tracing"
_MAKE_TEXT = (
    "give the trace's folder to `babeltrace2 --clock-seconds FOLDER >FILE.txt`, and that text here"
)
_OTHER_TOOLS = {
    b"\xc1\x1f\xfc\xc1": ("it is a stream of a CTF trace, as LTTng writes them", _MAKE_TEXT),
    b"\xc1\xfc\x1f\xc1": ("it is a stream of a CTF trace, as LTTng writes them", _MAKE_TEXT),
    b"\x57\x1d\xd1\x75": ("it is the metadata of a CTF trace, as LTTng writes them", _MAKE_TEXT),
    b"/* CTF 1": ("it is the metadata of a CTF trace, as LTTng writes them", _MAKE_TEXT),
    b"Attaching ": (
        "it is the output of a bpftrace script, which has no standard format",
        RECORD_WITH,
    ),
    b"Attached ": (
        "it is the output of a bpftrace script, which has no standard format",
        RECORD_WITH,
    ),
}
"""For files of other tools, by their first bytes: what they are, and what to do."""
_IN_NO_TEXT = re.compile(rb"[\x00-\x08]")
_SAMPLE_BYTES = 1 << 16
_CPUS_MAX = 8192
"""More CPUs than Linux supports."""
_STATED_CPUS = re.compile(r"^(?:cpus=|#.*#P:)(\d+)", re.MULTILINE)
"""The number of CPUs in the headers that trace-cmd and the kernel print."""


@dataclass(frozen=True)
class Tool:
    """A program that prints recordings as text."""

    program: str
    packages: tuple[str, ...]
    """The packages that contain it: Debian's name first, then those of other distributions."""
    file: str
    """Usual name of its files."""
    report: tuple[str, ...]
    """Arguments that print all events; the file's name is added at the end."""
    as_text: str
    """The same command for users, who may run it on another machine."""
    elsewhere: str = ""
    """Pattern of paths where more copies of the program may be."""

    def find(self) -> str | None:
        """Returns the path of the first copy that can run, or None.

        On Ubuntu, `perf` on the PATH is a script that refuses to run unless the kernel is that of
        its package. The actual program reads recordings of all kernels.
        """
        places = [shutil.which(self.program), *sorted(glob.glob(self.elsewhere), reverse=True)]
        return next((place for place in places if place and _version_number(place)), None)


PERF = Tool(
    "perf",
    ("linux-perf", "linux-tools-generic"),
    "perf.data",
    (
        *("script", "--force", "--ns", "--fields", "tid,cpu,time,event,trace"),
        *("--show-lost-events", "--show-task-events", "--input"),
    ),
    "perf script --force --ns --show-lost-events --show-task-events"
    " --fields tid,cpu,time,event,trace -i FILE >FILE.txt",
    "/usr/lib/linux-tools-*/perf",
)
TRACE_CMD = Tool(
    "trace-cmd",
    ("trace-cmd",),
    "trace.dat",
    # The latency format shows interrupts. Without plugins, states are printed as the kernel's
    # letters.
    ("report", "-t", "-l", "-N", "-i"),
    "trace-cmd report -t -l -N -i FILE >FILE.txt",
)


@dataclass(frozen=True)
class Recording:
    """The contents of a recording."""

    events: Events
    cpus: int
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts about the recorded machine: host, release, architecture, command."""
    tool: str = "text"
    """Name and version of the tool that read the recording."""
    coverage: Coverage = field(default_factory=Coverage)
    """The recorded CPUs and threads."""


def read(path: Path) -> Recording:
    """Reads a recording. Raises WrongUsage if it is not a recording of scheduling, and MachineUnfit
    if its tool is missing.
    """
    _check_file(path)
    with open_unpacked(path) as plain:
        try:
            return _read(plain)
        except (
            WrongUsage,
            MachineUnfit,
        ) as error:  # error messages must name the file that the user named
            why, what, fix = (
                part.replace(str(plain), str(path)) for part in (error.why, error.what, error.fix)
            )
            raise type(error)(why, what=what, fix=fix) from None


def _read(path: Path) -> Recording:
    if _is_perfetto(_read_first_bytes(path)):
        from schedlab.recordings.perfetto import read_perfetto  # loading its classes is slow

        recording = Recording(*read_perfetto(path), f"perfetto {package_version('perfetto')}")
    else:
        recording = _read_with(_tool_of(path), path)
    _check(path, recording.events)
    highest = max(event.cpu for event in recording.events.events)
    if highest >= _CPUS_MAX:
        raise WrongUsage(
            f"{path}: has an event of CPU {highest}, but Linux has at most "
            f"{_CPUS_MAX:,} CPUs; record it again"
        )
    targets = (event.target_cpu for event in recording.events.events if isinstance(event, Wakeup))
    highest = max(highest, *(cpu for cpu in targets if cpu < _CPUS_MAX), 0)
    cpus = max(min(recording.cpus, _CPUS_MAX), highest + 1)
    command = recording.facts.get("command", "")
    coverage = coverage_of(recording.events, cpus, command, all_cpus=recording.cpus > 0)
    return Recording(recording.events, cpus, recording.facts, recording.tool, coverage)


def _is_perfetto(begin: bytes) -> bool:
    """Returns whether a file that begins like this may be a Perfetto trace.

    Each packet begins with a line feed, and contains bytes that no text has.
    """
    return begin.startswith(b"\n") and _IN_NO_TEXT.search(begin) is not None


def _check_file(path: Path) -> None:
    """Raises WrongUsage if the path is not a file; explains what to do with a CTF trace's folder."""
    if path.is_dir() and any(path.rglob("metadata")):
        raise WrongUsage(
            f"{path}: a folder with a CTF trace (LTTng); convert it with `babeltrace2 "
            f"--clock-seconds {path} >FILE.txt`, and name that file"
        )
    if not path.is_file():
        raise WrongUsage(f"{path}: not a file; {RECORD_WITH}")


def _read_first_bytes(path: Path) -> bytes:
    """Returns the first bytes of a file. Raises WrongUsage if it is empty."""
    with path.open("rb") as file:
        begin = file.read(_SAMPLE_BYTES)
    if not begin:
        raise WrongUsage(f"{path}: the file is empty; {RECORD_WITH}")
    return begin


def _read_with(tool: Tool | None, path: Path) -> Recording:
    if tool is None:
        text = path.read_text(errors="replace")
        if is_babeltrace(text):
            return Recording(parse(as_ftrace(text)), 0, {}, "babeltrace2's text")
        facts = _parse_facts(text[:_SAMPLE_BYTES])
        cpus = int(facts.get("cpus", 0)) or _stated_cpus(text)
        return Recording(parse(text), cpus, facts)
    _require(tool, path)
    if tool is PERF:
        return _read_perf(path)
    text = _report(tool, path)
    return Recording(parse(text), _stated_cpus(text), {}, version(tool))


def _stated_cpus(text: str) -> int:
    """Returns the number of CPUs that the recording states; 0 if it states none."""
    match = _STATED_CPUS.search(text)
    return min(int(match[1]), _CPUS_MAX) if match else 0


def _tool_of(path: Path) -> Tool | None:
    """Returns the program that reads the file, or None if the file is text.

    Raises WrongUsage if it is not a recording.
    """
    begin = _read_first_bytes(path)
    for magic, (what, cure) in _OTHER_TOOLS.items():
        if begin.startswith(magic):
            raise WrongUsage(f"{path}: {what}; {cure}")
    if begin.startswith(_PERF_MAGIC):
        return PERF
    if begin.startswith(_TRACE_CMD_MAGIC):
        return TRACE_CMD
    if b"\0" in begin:
        raise WrongUsage(
            f"{path}: not a recording of perf, trace-cmd or Perfetto, and not the text"
            f" that perf or trace-cmd prints; {RECORD_WITH}"
        )
    return None


def _report(tool: Tool, path: Path) -> str:
    """Returns the text that a tool prints for a recording. Raises WrongUsage if it prints none."""
    result = _run(tool, *tool.report, str(path))
    if result.returncode or not result.stdout.strip():
        raise WrongUsage(_explain_rejection(tool, path, result.stderr))
    return result.stdout


def _require(tool: Tool, path: Path) -> None:
    if not tool.find():
        raise MachineUnfit(
            f"{path}: {tool.program} reads a {tool.file}, and is not installed; "
            f"install {' or '.join(tool.packages)}, or convert the file to text on a "
            f"host that has {tool.program}: {tool.as_text}"
        )


def _explain_rejection(tool: Tool, path: Path, message: str) -> str:
    """Returns why a tool rejected a file: usually the tool is too old, or the file is truncated."""
    if tool is PERF:  # perf explains the error only with -v
        message += _run(PERF, "script", "-v", "--header-only", "--input", str(path)).stderr
    lines = [line.strip().rstrip(".") for line in message.splitlines()]
    causes = [line for line in lines if line and not _NO_CAUSE.search(line)]
    return (
        f"{path}: {version(tool)} cannot read it ({(causes or ['no reason given'])[0]})."
        f" If the file is damaged or truncated, record it again. If a newer {tool.program} made"
        " it, install that version, or convert the file to text on the recording host:"
        f" {tool.as_text}"
    )


_NO_CAUSE = re.compile(r"Ignoring|rerun with -v|build-id")


def version(tool: Tool) -> str:
    """Returns name and version, such as `perf 6.1.187`."""
    return f"{tool.program} {_version_number(tool.find() or tool.program)}".strip()


def _version_number(program: str) -> str:
    """Returns a program's version; "" if it cannot run.

    trace-cmd prints its version, but exits with an error status.
    """
    try:
        result = _output(program, "--version").stdout
    except OSError:
        return ""
    match = re.search(r"\d+(?:\.\d+)+", result)
    return match[0] if match else ""


def _run(tool: Tool, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _output(tool.find() or tool.program, *arguments)


def _output(*command: str) -> subprocess.CompletedProcess[str]:
    # Prevents requests to servers for the names of functions, which are not needed.
    environment = {**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C"}
    return run_captured(command, env=environment)


_HEADER_LINE = re.compile(r"^# ([\w ]+?) : (.*)$", re.MULTILINE)


_NAMES = {
    "host": "hostname",
    "release": "os release",
    "architecture": "arch",
    "command": "cmdline",
    "recorder": "perf version",
    "cpus": "nrcpus online",
}
"""perf's names of the facts about the machine, by schedlab's names."""


def _read_perf(path: Path) -> Recording:
    """Reads a file of perf record; a recording without events if it has no sched_switch."""
    header = _run(PERF, "script", "--force", "--header-only", "--input", str(path)).stdout
    if "# event : name = " in header and "sched_switch" not in header:
        # For other events, which lack the requested fields, perf fails without an explanation.
        return Recording(Events(), 0)
    facts = _parse_facts(header)
    return Recording(parse(_report(PERF, path)), int(facts.get("cpus", 0)), facts, version(PERF))


def _parse_facts(header: str) -> dict[str, str]:
    """Returns the facts about the machine in perf's header."""
    header_values = dict(_HEADER_LINE.findall(header))
    facts = {
        name: header_values[key].strip() for name, key in _NAMES.items() if key in header_values
    }
    if not facts.get("cpus", "0").isdecimal():
        del facts["cpus"]
    return facts


def _check(path: Path, events: Events) -> None:
    """Raises WrongUsage if the recording lacks events that a trace needs."""
    if not any(isinstance(event, Switch) for event in events.events):
        example = events.unreadable[0] if events.unreadable else ""
        if example:
            raise WrongUsage(
                f"{path}: its events have an unsupported format: {example}; {RECORD_WITH}"
            )
        raise WrongUsage(
            f"{path}: no sched_switch events, so running tasks are unknown; {RECORD_WITH}"
        )
