# SPDX-License-Identifier: MIT
"""SimSo's earliest deadline first, on the sets of tasks that `./schedlab dev bench deadlines` draws.

Reads JSON from standard input: a list of objects, with `tasks` and the time until which jobs are
released, `until_ns`. Prints a list for each: task, number of the job, and when it was done, in ns.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_MS = 1_000_000


def done(request: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Of all jobs that were done; SimSo goes on with a late one beside the next, as we do."""
    from simso.configuration import Configuration
    from simso.core import Model

    configuration = Configuration()
    configuration.cycles_per_ms = _MS
    configuration.duration = request["until_ns"]
    for number, task in enumerate(request["tasks"]):
        configuration.add_task(
            name=task["name"],
            identifier=number + 1,
            period=task["period"] / _MS,
            activation_date=0,
            wcet=task["runtime"] / _MS,
            deadline=task["deadline"] / _MS,
            abort_on_miss=False,
        )
    configuration.add_processor(name="CPU 0", identifier=1)
    configuration.scheduler_info.clas = "simso.schedulers.EDF_mono"
    configuration.check_all()
    model = Model(configuration)
    model.run_model()
    return [
        (task.name, number, round(job.end_date))
        for task in model.task_list
        for number, job in enumerate(task.jobs)
        if job.end_date is not None
    ]


if __name__ == "__main__":
    json.dump([done(request) for request in json.load(sys.stdin)], sys.stdout)
