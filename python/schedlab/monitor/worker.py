# SPDX-License-Identifier: MIT
"""Runs slow work in a separate process, so that frames continue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from schedlab.base.host.isolated import call_command, request_text
from schedlab.base.host.supervision import end_group, to_the_end
from schedlab.errors import SchedlabError
from schedlab.machines.outcome import Outcome

Report = Callable[[str], None]
"""Receives progress lines."""

_LAST_LINES = 4


async def measure(folder: Path) -> Outcome:
    """Checks a run's trace and writes its metrics into the run's folder, as `./schedlab run` does."""
    return Outcome(**await _call(measured, folder=folder))


async def perfetto(trace: Path, file: Path) -> None:
    """Writes a trace in Perfetto's format."""
    await _call(exported, trace=trace, file=file)


async def report(folders: list[Path], out: Path, show: Report) -> Path:
    """Writes a report of runs; returns the file to open."""
    return Path(await _call(reported, show, folders=folders, out=out))


async def branch(
    source: Path,
    at_ns: int,
    policy: str,
    settings: Sequence[tuple[str, int]],
    out: Path,
    show: Report,
) -> list[Path]:
    """Runs two branches of a run: unchanged, and with another policy or tunables.

    Returns the folders of the branches. Omits the unchanged branch if it equals the run.
    """
    request = {"source": source, "at_ns": at_ns, "policy": policy, "settings": settings, "out": out}
    return [Path(folder) for folder in await _call(branched, show, **request)]


async def _call(
    function: Callable[..., Any], show: Report = lambda line: None, **request: Any
) -> Any:
    """Calls a function in a separate process. Raises SchedlabError with the last lines if it fails."""
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
            raise SchedlabError("\n".join(words[-_LAST_LINES:]) or f"{function.__name__} failed")
        return json.loads(output)
    finally:
        if process.returncode is None:
            await to_the_end(end_group(process))


async def _read_progress(stream: asyncio.StreamReader, show: Report) -> list[str]:
    lines = []
    while line := await stream.readline():
        lines.append(line.decode(errors="replace").rstrip().removeprefix("schedlab: "))
        show(lines[-1])
    return lines


# --- functions of the separate process


def measured(folder: str) -> dict[str, str]:
    """Measures a run; returns its status and message."""
    from schedlab.runs.worker import evaluate

    _, outcome = evaluate(Path(folder), Outcome("success"))
    return {"status": outcome.status, "message": outcome.message}


def exported(trace: str, file: str) -> None:
    """Writes a trace in Perfetto's format."""
    from schedlab.trace import export, read

    export(read(trace), file, "perfetto")


def reported(folders: list[str], out: str) -> str:
    """Writes a report of runs; returns the file to open."""
    from schedlab.report.command import report

    made = report(tuple(map(Path, folders)), Path(out), ("html",), False, None, ())
    return str(made["report"])


def branched(
    source: str, at_ns: int, policy: str, settings: list[tuple[str, int]], out: str
) -> list[str]:
    """Runs two branches; returns their folders, without the branch that is the run itself."""
    from schedlab.base.toolchain.policies import parse_choices
    from schedlab.runs import branch_runs
    from schedlab.runs.branches import Future, moment, past
    from schedlab.runs.plan_execution import describe

    history = past(Path(source))
    moment(f"{at_ns}ns", history.events)
    choice = parse_choices(policy)[0] if policy else None
    futures = [Future(), Future(choice, tuple((name, value) for name, value in settings))]
    finished = branch_runs.perform(history, at_ns, futures, Path(out))
    if failures := list(describe(finished)):
        raise SchedlabError("\n".join(failures))
    same = branch_runs.is_the_run(history, finished[0])
    return [str(run.folder) for run in finished][same:]
