# SPDX-License-Identifier: MIT
"""`./schedlab dev bench scx-agreement`: runs schedulers of sched_ext in the Linux guest, for comparison."""

import json
import os
import tempfile
from pathlib import Path

import click

import schedlab
from schedlab import trace
from schedlab.base.display.terminal import print_result, say
from schedlab.base.files.atomic import atomic_write
from schedlab.errors import SchedlabError
from schedlab.machines.linux.packages import packages
from schedlab.machines.linux.parts import build_linux
from schedlab.paths import ROOT
from schedlab_tools.scx_agreement import (
    CASES,
    GUEST_RUNS,
    LIMIT_NS,
    SEED,
    TICK_NS,
    Case,
    TaskRun,
    compare,
    compile_logged,
    entry_of,
    guest_calls,
    read_guest_runs,
    simulate,
    stored_tasks,
    tasks_of,
)

ATTACH = "build/linux/attach"


@click.command("scx-agreement")
@click.option("--again", is_flag=True, help="Repeat runs that the data already has.")
def scx_agreement(again: bool) -> None:
    """Compare sched_ext in the simulator with Linux.

    Runs the tests' own schedulers in the repeatable Linux guest, and stores their callbacks in
    bench/scx-agreement/guest.json. Runs whose scheduler and workload have not changed are not
    repeated. `./schedlab dev docs scx-agreement` writes the table.
    """
    stored = read_guest_runs()
    for case in CASES:
        known = stored.get(case)
        if again or not known or known["inputs"] != case.inputs:
            say(f"running {case.scheduler} on Linux, {case.cpus} CPUs")
            try:
                stored[case] = entry_of(case, packages().kernel.release, run_on_linux(case))
            except SchedlabError as error:
                say(f"{case.scheduler}: {error}")
                continue
        with atomic_write(GUEST_RUNS) as new:
            new.write_text(json.dumps(list(stored.values()), indent=1) + "\n")
    for case in stored:
        agreement = compare(stored_tasks(stored[case]), simulate(case))
        print_result(f"{case.scheduler}, {case.cpus} CPUs: {agreement}")


def run_on_linux(case: Case) -> list[TaskRun]:
    """Runs a case in the guest. Returns its tasks. Raises SchedlabError if the run fails."""
    build_linux(ATTACH)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / f"scx_{case.scheduler}"
        attach = (ROOT / ATTACH).read_bytes()
        program.write_bytes(attach + compile_logged(case, folder).read_bytes())
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        runs = schedlab.run(
            str(case.workload_file),
            f"scx:{case.scheduler}",
            cpus=case.cpus,
            machine="linux",
            first_seed=SEED,
            tick_ns=TICK_NS,
            limit_ns=LIMIT_NS,
            out=folder / "runs",
        )
        if runs.failed:
            raise SchedlabError(next(iter(runs.failed.values())))
        place = runs[0].folder
        console = (place / "console.log").read_text(errors="replace")
        return tasks_of(trace.read(place / "trace.bin"), guest_calls(console, case.scheduler))
