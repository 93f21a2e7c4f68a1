# SPDX-License-Identifier: MIT
"""`./schedlab dev bench questions`: measures the answers of the gallery's pages of questions."""

import datetime
import re
from collections.abc import Sequence

import click

import schedlab
from schedlab.base.display.terminal import say
from schedlab.base.files.atomic import file_hash
from schedlab.errors import SchedlabError, WrongUsage
from schedlab_tools.questions import (
    QUESTIONS,
    SEEDS,
    Measure,
    Question,
    Row,
    add_results,
)

_OBJECT = re.compile(r"SHA-256 ([0-9a-f]{64})")
"""The object's hash in the boot arguments of a run under a compiled scheduler."""


@click.command("questions")
@click.option("--question", "names", multiple=True, help="Only this question.  [default: all]")
@click.option(
    "--policy", "policies", multiple=True, help="Only this policy.  [default: all that are here]"
)
def questions(names: tuple[str, ...], policies: tuple[str, ...]) -> None:
    """Measure the answers of the gallery's pages of questions, in the simulator.

    Replaces their rows of bench/questions/results.csv. Rows of schedulers that are not installed stay.
    `./schedlab dev docs questions` writes the pages.
    """
    known = {question.name: question for question in QUESTIONS}
    if unknown := [name for name in names if name not in known]:
        raise WrongUsage(f"{unknown[0]}: unknown", what="--question", fix=f"use {', '.join(known)}")
    for name in names or known:
        for policy in policies or known[name].policies:
            try:
                add_results(measure_question(known[name], policy, range(1, SEEDS + 1)))
            except SchedlabError as error:
                say(f"{name}, {policy}: {error}")


def measure_question(question: Question, policy: str, seeds: Sequence[int]) -> list[Row]:
    """Runs the workloads of a question under a policy. Raises SchedlabError if a run fails."""
    return [
        row
        for measure in question.measures
        for seed in seeds
        for row in [_measure_once(question, measure, policy, seed)]
    ]


def _measure_once(question: Question, measure: Measure, policy: str, seed: int) -> Row:
    # The seed also decides where in a tick the workload starts.
    start = round(measure.tick_ns * (1 + seed * 0.618 % 1))
    runs = schedlab.run(
        str(measure.path),
        policy,
        cpus=measure.cpus,
        first_seed=seed,
        tick_ns=measure.tick_ns,
        costs=f"kernel,boot={start}",
    )
    if runs.failed:
        raise SchedlabError(next(iter(runs.failed.values())))
    group_row = next(row for row in runs.groups.to_dicts() if row["group"] == measure.group)
    scheduler = _OBJECT.search(str(runs[0].manifest["boot_arguments"]))
    return {
        "question": question.name,
        "measure": measure.name,
        "policy": policy,
        "seed": str(seed),
        "value": f"{group_row[measure.column] * measure.scale:.6g}",
        "workload_sha256": file_hash(measure.path),
        "object_sha256": scheduler[1] if scheduler else "",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
