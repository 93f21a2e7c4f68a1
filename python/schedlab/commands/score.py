# SPDX-License-Identifier: MIT
"""`./schedlab score`: prints a policy's score card."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import new_table, result_console
from schedlab.commands.execution import perform, print_plan
from schedlab.commands.options import (
    EXISTING_FILE,
    POLICIES,
    echo_json,
    execution_options,
)
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from schedlab.analysis.comparison.statistics import Difference
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.courses.scoring.score_card import MeasuredPolicies, ObjectiveScore, ScoreCard
    from schedlab.courses.scoring.workload_sets import Level, WorkloadSet
    from schedlab.machines.spec import RunSpec

KEY_BYTES_MIN = 16


@click.command()
@click.argument("policies", metavar="POLICY[,POLICY]...", type=POLICIES)
@click.option(
    "--level",
    "level_name",
    type=click.Choice(["quick", "true", "confirmed"]),
    default="quick",
    show_default=True,
    help="quick: in the simulator. true: on the schedlab kernel, including the "
    "scheduler's own time. confirmed: in a Linux guest for each run, compared only with the"
    " reference and the named policies.",
)
@click.option(
    "--key",
    "key_file",
    type=EXISTING_FILE,
    help="Derive hidden variants of the workloads from this file of at least 16 bytes.",
)
@click.option(
    "--workload-set",
    "set_name",
    metavar="NUMBER",
    help="Use this published set of workloads, such as 1, instead of the latest.",
)
@execution_options
def score(
    policies: tuple[PolicyChoice, ...],
    level_name: str,
    key_file: Path | None,
    set_name: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Score a policy, objective by objective, in comparison with all others.

    A fixed set of workloads runs under it and under all other policies. Prints for each objective the factor over
    the set's reference, with its interval; then whether the policy is on the Pareto front, or which policies are
    better in everything. --key adds hidden variants of the same workloads: a policy that is good only with the
    public ones is overfitted. docs/score.md describes the set.
    """
    from schedlab.base.toolchain.policies import (
        check_choices,
        describe_unknown_name,
        read_catalogue,
    )
    from schedlab.courses.scoring.measuring import missing_runs
    from schedlab.courses.scoring.workload_sets import LATEST_SET, SHOWN_KEY, read_set, set_names
    from schedlab.machines import SIMULATOR
    from schedlab.machines.published import is_published

    check_choices(read_catalogue(), [policy for policy in policies if not is_published(policy)], {})
    if set_name and set_name not in set_names():
        raise WrongUsage(f"--workload-set: {describe_unknown_name('set', set_name, set_names())}")
    workload_set = read_set(set_name or LATEST_SET)
    key = _read_key(key_file) if key_file else None
    level = workload_set.levels[level_name]
    if level.machine != SIMULATOR and any(map(is_published, policies)):
        raise WrongUsage(
            f"--level {level.name}: sched_ext schedulers are scored in the simulator only; use --level quick"
        )
    if not level.compares_all_policies and policies == (workload_set.reference,):
        raise WrongUsage(
            f"--level {level.name}: compares policies with {workload_set.reference}; "
            "name another policy"
        )
    measured_policies = _policies_to_measure(workload_set, level, policies)
    if dry_run:
        keys = (SHOWN_KEY, key) if key else (SHOWN_KEY,)
        missing = (missing_runs(workload_set, key, level, measured_policies) for key in keys)
        print_plan([run for runs in missing for run in runs], as_json)
        return
    cards, hidden, log_gaps = _make_cards(workload_set, level, policies, measured_policies, key)
    if as_json:
        echo_json(
            {
                "set": {"name": workload_set.name, "sha256": workload_set.sha256},
                "level": level.name,
                "machine": level.machine,
                "key_sha256": key and hashlib.sha256(key).hexdigest(),
                "made_at": _commit_facts(),
                "cards": {
                    name: {
                        "source_sha256": _source_hash(choice),
                        "shown": cards[name].to_dict(),
                        **(
                            {"hidden": hidden[name].to_dict(), "gaps": _gaps_dict(log_gaps[name])}
                            if key
                            else {}
                        ),
                    }
                    for name, choice in zip(cards, policies, strict=True)
                },
            }
        )
    else:
        for name in cards:
            for part in _card_texts(
                workload_set, level, key, cards[name], hidden.get(name), log_gaps.get(name, {})
            ):
                result_console().print(part, soft_wrap=isinstance(part, str))
    if any(score_card.failure for score_card in (*cards.values(), *hidden.values())):
        raise SystemExit(1)


def _read_key(file: Path) -> bytes:
    """Returns the content of the key's file. Raises WrongUsage if it is too short."""
    key = file.read_bytes()
    if len(key) < KEY_BYTES_MIN:
        raise WrongUsage(
            f"--key {file}: a key of {len(key)} bytes can be guessed; create a longer one: "
            f"head -c 32 /dev/urandom >{file}"
        )
    return key


def _policies_to_measure(
    workload_set: WorkloadSet, level: Level, policies: Sequence[PolicyChoice]
) -> tuple[PolicyChoice, ...]:
    """Returns the policies to measure: the given ones, and their references."""
    from schedlab.base.toolchain.policies import PolicyChoice, read_catalogue

    everything = (
        [PolicyChoice(name) for name in read_catalogue()] if level.compares_all_policies else []
    )
    return tuple(dict.fromkeys([*everything, workload_set.reference, *policies]))


def _make_cards(
    workload_set: WorkloadSet,
    level: Level,
    policies: Sequence[PolicyChoice],
    measured_policies: Sequence[PolicyChoice],
    key: bytes | None,
) -> tuple[dict[str, ScoreCard], dict[str, ScoreCard], dict[str, dict[str, Difference]]]:
    """Returns the cards with shown and with hidden variants by policy, and the
    logarithms of the gaps between them.
    """
    from schedlab.courses.scoring import score_card
    from schedlab.courses.scoring.measuring import measure
    from schedlab.courses.scoring.workload_sets import SHOWN_KEY

    names = list(map(str, policies))
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:

        def measure_with(with_key: bytes) -> MeasuredPolicies:
            """Measures all policies with this key."""
            return measure(
                workload_set, with_key, level, measured_policies, Path(scratch), _run_all
            )

        shown, hidden = measure_with(SHOWN_KEY), measure_with(key) if key else None
    with working("comparing the policies"):
        cards = {name: score_card.make_card(workload_set, level, shown, name) for name in names}
    if hidden is None:
        return cards, {}, {}
    reference = str(workload_set.reference)
    return (
        cards,
        {name: score_card.make_card(workload_set, level, hidden, name) for name in names},
        {name: score_card.improvement_gaps(shown, hidden, reference, name) for name in names},
    )


def _run_all(runs: Sequence[RunSpec], folder: Path) -> Path:
    from schedlab.runs.plan import Plan

    plan = Plan(folder, tuple(runs))
    plan.check()
    perform(plan, keep_runs=False)
    return folder


def _card_texts(
    workload_set: WorkloadSet,
    level: Level,
    key: bytes | None,
    shown: ScoreCard,
    hidden: ScoreCard | None,
    log_gaps: dict[str, Difference],
) -> Iterator[RenderableType]:
    sides = [("public", shown), *([("hidden", hidden)] if hidden else [])]
    for side, score_card in sides:
        if score_card.failure:
            yield f"{shown.policy} has no score: a run with {side} variants failed: {score_card.failure}"
            return
    columns = [column for side, _ in sides for column in (f">{side}", "best other")]
    table = new_table(
        f"{shown.policy}, set {workload_set.name}, {level.name}: better than {workload_set.reference} by a factor of",
        "objective",
        *columns,
        *([">public ÷ hidden"] if hidden else []),
    )
    for index, figure in enumerate(shown.figures):
        cells = [cell for _, score_card in sides for cell in _cells(score_card.figures[index])]
        log_gap = log_gaps.get(figure.objective.name)
        table.add_row(figure.objective.title, *cells, *([_gap_text(log_gap)] if hidden else []))
    yield table
    if not level.compares_all_policies:
        yield f"On Linux, only {workload_set.reference} and the named policies are compared."
    for side, score_card in sides:
        suffix = f" with {side} variants" if hidden else ""
        yield f"{_pareto_text(score_card)}{suffix}."
    weights = ", ".join(
        f"{figure.objective.name} {figure.objective.weight:g}" for figure in shown.figures
    )
    scores = ", ".join(
        f"{score_card.score:.3f} {side}" if score_card.score else f"none {side}"
        for side, score_card in sides
    )
    yield f"Score with the weights {weights}: {scores}."
    if key:
        yield f"Key {hashlib.sha256(key).hexdigest()[:16]}."
    surer = [name for name, log_gap in log_gaps.items() if log_gap.low > 0]
    if surer:
        yield f"Overfitted to the public variants: {', '.join(surer)}. Use the hidden figures."


def _cells(figure: ObjectiveScore) -> tuple[str, str]:
    """Returns the factor of an objective with its interval, and the best other policy."""
    best = f"{figure.best_other} {math.exp(figure.best_other_log_improvement):.2f}"
    if not figure.log_improvement:
        return "no value", best
    mean, low, high = (
        math.exp(bound)
        for bound in (
            figure.log_improvement.mean,
            figure.log_improvement.low,
            figure.log_improvement.high,
        )
    )
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]", best


def _gap_text(log_gap: Difference | None) -> str:
    """Returns the gap between shown and hidden variants in words."""
    if log_gap is None:
        return ""
    return f"{math.exp(log_gap.change):.2f} [{math.exp(log_gap.low):.2f}, {math.exp(log_gap.high):.2f}]"


def _pareto_text(score_card: ScoreCard) -> str:
    """Returns which policies dominate the scored one, as a sentence."""
    if not score_card.dominated_by:
        return f"{score_card.policy} is on the Pareto front"
    sure = (
        f" (significantly: {', '.join(score_card.surely_dominated_by)})"
        if score_card.surely_dominated_by
        else ""
    )
    return f"{score_card.policy} is dominated by {', '.join(score_card.dominated_by)}{sure}"


def _gaps_dict(log_gaps: dict[str, Difference]) -> dict[str, Any]:
    """Returns the gaps, as factors, for JSON."""
    return {
        name: {
            "factor": math.exp(log_gap.change),
            "low": math.exp(log_gap.low),
            "high": math.exp(log_gap.high),
        }
        for name, log_gap in log_gaps.items()
    }


def _source_hash(policy: PolicyChoice) -> str:
    """Returns the hash of a policy's C file, or of a sched_ext scheduler's object."""
    from schedlab.base.files.atomic import file_hash
    from schedlab.machines.published import is_published, object_sha256
    from schedlab.paths import ROOT

    if is_published(policy):
        return object_sha256(policy)
    return file_hash(ROOT / "policies" / f"{policy.name}.c")


def _commit_facts() -> dict[str, Any]:
    """Returns the commit of the checkout, for JSON."""
    from schedlab.base.toolchain.versions import commit_facts

    return commit_facts()
