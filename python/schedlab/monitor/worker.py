# SPDX-License-Identifier: MIT
"""What takes long is done by a process of its own, so that frames keep coming meanwhile.

python -m schedlab.monitor.worker measure FOLDER      prints {"status", "message"}
python -m schedlab.monitor.worker perfetto TRACE FILE
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schedlab.base.host.interpreter import module_command
from schedlab.base.host.supervision import end_group, to_the_end
from schedlab.errors import SchedlabError
from schedlab.machines.outcome import Outcome

Tell = Callable[[str], None]
"""Is given lines that say how far it is."""

_LAST_LINES = 4


async def measure(folder: Path) -> Outcome:
    """Checks a run's trace, and writes its metrics beside it; as `./schedlab run` does."""
    said = await _call("schedlab.monitor.worker", "measure", str(folder))
    return Outcome(**json.loads(said))


async def perfetto(trace: Path, file: Path) -> None:
    """Writes a trace in Perfetto's format."""
    await _call("schedlab.monitor.worker", "perfetto", str(trace), str(file))


async def report(folders: list[Path], out: Path, tell: Tell) -> Path:
    """Makes a report of runs; gives the file to open."""
    places = [str(folder) for folder in folders]
    said = await _call("schedlab", "report", *places, "--out", str(out), "--json", tell=tell)
    return Path(json.loads(said)["report"])


async def branch(source: Path, at_ns: int, changes: list[str], out: Path, tell: Tell) -> Any:
    """Carries out futures of a run, as `./schedlab branch` does; gives what that prints.

    `changes`: options that say what is done otherwise.
    """
    what = ["branch", str(source), "--at", f"{at_ns}ns", *changes, "--out", str(out), "--json"]
    return json.loads(await _call("schedlab", *what, tell=tell))


async def _call(module: str, *arguments: str, tell: Tell = lambda line: None) -> str:
    """Returns what a module prints that is run as a program. SchedlabError: what it said as it failed."""
    process = await asyncio.create_subprocess_exec(
        *module_command(module, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout and process.stderr
    try:
        said, words = await asyncio.gather(process.stdout.read(), _told(process.stderr, tell))
        if await process.wait():
            raise SchedlabError("\n".join(words[-_LAST_LINES:]) or f"{module} failed")
        return said.decode()
    finally:
        if process.returncode is None:
            await to_the_end(end_group(process))


async def _told(stream: asyncio.StreamReader, tell: Tell) -> list[str]:
    lines = []
    while line := await stream.readline():
        lines.append(line.decode(errors="replace").rstrip().removeprefix("schedlab: "))
        tell(lines[-1])
    return lines


def main(arguments: list[str]) -> None:
    """The process's own part."""
    if arguments[0] == "measure":
        from schedlab.runs.worker import evaluate

        _, outcome = evaluate(Path(arguments[1]), Outcome("success"))
        print(json.dumps({"status": outcome.status, "message": outcome.message}))
    else:
        from schedlab import trace

        trace.export(trace.read(arguments[1]), arguments[2], "perfetto")


if __name__ == "__main__":
    main(sys.argv[1:])
