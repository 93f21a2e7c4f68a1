# SPDX-License-Identifier: MIT
"""Compares measured numbers of instructions with the committed ones in bench/budgets.csv.

Part, operation and number of tasks identify a count: `kernel`, a policy's name or `simulator`; what
was executed once; how many tasks there were (0: not stated).
"""

import csv
from collections.abc import Collection, Mapping

from schedlab.paths import ROOT

FILE = ROOT / "bench" / "budgets.csv"
ALLOWED = 0.01
"""The largest change of a count, as a fraction, that needs no new budget."""
DECISION = "enqueue+pick"
"""The operation of a policy that is counted: one enqueue and one pick."""
_COLUMNS = ("part", "operation", "tasks", "instructions")

Counts = dict[tuple[str, str, int], int]
"""Instructions by part, operation and number of tasks."""


def read_budgets() -> Counts:
    """Returns the committed counts, in their order; none if there is no file yet."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="", encoding="utf-8") as file:
        return {
            (row["part"], row["operation"], int(row["tasks"])): int(row["instructions"])
            for row in csv.DictReader(file)
        }


def write_budgets(counts: Mapping[tuple[str, str, int], int]) -> None:
    """Replaces the committed counts."""
    lines = [",".join(map(str, (*key, count))) for key, count in counts.items()]
    FILE.write_text("\n".join([",".join(_COLUMNS), *lines, ""]), encoding="utf-8")


def decision_costs() -> dict[str, dict[int, int]]:
    """Returns the committed instructions of one enqueue and one pick, by policy and tasks."""
    costs: dict[str, dict[int, int]] = {}
    for (part, operation, tasks), count in read_budgets().items():
        if operation == DECISION:
            costs.setdefault(part, {})[tasks] = count
    return costs


def exceeded(
    measured: Mapping[tuple[str, str, int], int], without: Collection[str] = ()
) -> list[str]:
    """Returns a sentence for each count that is new, gone, or changed by more than 1 %.

    A fall counts too: a budget that is too high would hide the next rise. `without` names policies
    that have no budget yet.
    """
    budgets = read_budgets()
    sentences = []
    for key in dict.fromkeys([*budgets, *measured]):
        if key[0].partition(":")[0] in without:
            continue
        budget, count = budgets.get(key), measured.get(key)
        if budget is None or count is None or abs(count - budget) > ALLOWED * budget:
            sentences.append(
                f"{_name(key)}: {_number(count)} instructions, {_number(budget)} before"
            )
    return sentences


def _name(key: tuple[str, str, int]) -> str:
    """Returns a count's part, operation and number of tasks in words."""
    part, operation, tasks = key
    return f"{part}, {operation}" + (f", {tasks:,} tasks" if tasks else "")


def _number(count: int | None) -> str:
    """Returns a count as text; a word for None."""
    return "no" if count is None else f"{count:,}"
