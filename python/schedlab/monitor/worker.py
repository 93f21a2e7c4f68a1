# SPDX-License-Identifier: MIT
"""Runs slow work in a separate process, so that pages and terminals continue to be updated."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from schedlab.base.host.isolated import call_command, request_text
from schedlab.base.host.supervision import await_completely, end_group
from schedlab.errors import SchedlabError
from schedlab.machines.outcome import Outcome

ReportProgress = Callable[[str], None]
"""Receives progress lines."""

_ERROR_LINES_MAX = 4


async def measure_run(folder: Path) -> Outcome:
    """Checks a run's trace and writes its metrics into the run's folder, as `./schedlab run` does."""
    return Outcome(**await _call_in_process(measure_folder, folder=folder))


async def write_perfetto(trace: Path, file: Path) -> None:
    """Writes a trace in Perfetto's format."""
    await _call_in_process(export_perfetto, trace=trace, file=file)


async def write_report(folders: list[Path], out: Path, show: ReportProgress) -> Path:
    """Writes a report of runs; returns the file to open."""
    return Path(await _call_in_process(report_folders, show, folders=folders, out=out))


async def branch(
    source: Path,
    at_ns: int,
    policy: str,
    settings: Sequence[tuple[str, int]],
    out: Path,
    show: ReportProgress,
) -> list[Path]:
    """Runs two branches of a stored run from `at_ns` on: unchanged, and with a policy or tunables.

    Returns their run folders. The unchanged branch is omitted if it equals the stored run.
    """
    request = {"source": source, "at_ns": at_ns, "policy": policy, "settings": settings, "out": out}
    return [Path(folder) for folder in await _call_in_process(run_branches, show, **request)]


async def _call_in_process(
    function: Callable[..., Any], show: ReportProgress = lambda line: None, **request: Any
) -> Any:
    """Calls a function in a separate process. Raises SchedlabError with its last lines of error output if it fails."""
    process = await asyncio.create_subprocess_exec(
        *call_command(function),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr
    try:
        process.stdin.write(request_text(**request).encode())
        process.stdin.close()
        output, words = await asyncio.gather(
            process.stdout.read(), _read_progress(process.stderr, show)
        )
        if await process.wait():
            raise SchedlabError(
                "\n".join(words[-_ERROR_LINES_MAX:])
                or f"{function.__name__} failed without a message; repeat it, and report it if it fails again"
            )
        return json.loads(output)
    finally:
        if process.returncode is None:
            await await_completely(end_group(process))


async def _read_progress(stream: asyncio.StreamReader, show: ReportProgress) -> list[str]:
    lines = []
    while line := await stream.readline():
        lines.append(line.decode(errors="replace").rstrip().removeprefix("schedlab: "))
        show(lines[-1])
    return lines


# --- functions of the separate process


def measure_folder(folder: str) -> dict[str, str]:
    """Measures a run; returns its status and message."""
    from schedlab.runs.worker import evaluate_run

    _, outcome = evaluate_run(Path(folder), Outcome("success"))
    return {"status": outcome.status, "message": outcome.message}


def export_perfetto(trace: str, file: str) -> None:
    """Writes a trace in Perfetto's format."""
    from schedlab.trace import export, read

    export(read(trace), file, "perfetto")


def report_folders(folders: list[str], out: str) -> str:
    """Writes a report of runs; returns the file to open."""

    from schedlab.report.command import report_runs

    paths = report_runs(tuple(map(Path, folders)), Path(out), ("html",), False, None, ())
    return str(paths["report"])


def run_branches(
    source: str, at_ns: int, policy: str, settings: list[tuple[str, int]], out: str
) -> list[str]:
    """Runs two branches, and returns their folders; omits an unchanged branch that equals the run."""
    from schedlab.base.toolchain.policies import parse_choices
    from schedlab.runs import branch_runs
    from schedlab.runs.branches import BranchChanges, open_branch_source, parse_branch_point
    from schedlab.runs.plan_execution import describe_failures

    history = open_branch_source(Path(source))
    parse_branch_point(f"{at_ns}ns", history.events)
    choice = parse_choices(policy)[0] if policy else None
    branches = [
        BranchChanges(),
        BranchChanges(choice, tuple((name, value) for name, value in settings)),
    ]
    finished = branch_runs.perform_branches(history, at_ns, branches, Path(out))
    if failures := list(describe_failures(finished)):
        raise SchedlabError("\n".join(failures))
    is_unchanged = branch_runs.equals_stored_run(history, finished[0])
    return [str(run.folder) for run in finished][is_unchanged:]
