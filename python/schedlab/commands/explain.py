# SPDX-License-Identifier: MIT
"""`./schedlab explain`: explains why tasks waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.numbers import duration, milliseconds, percent
from schedlab.base.display.terminal import new_table, print_full_width, print_result, say
from schedlab.commands.options import (
    EXISTING_PATH,
    Number,
    Parsed,
    echo_json,
    json_option,
    policy_option,
)
from schedlab.errors import WrongUsage
from schedlab.machines import Branching, machine_named
from schedlab.runs.branches import AttributeChange, BranchChanges, parse_attribute
from schedlab.units import parse_time

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from schedlab.analysis.explanation.explained_waits import Explained, ExplainedWait, WaitQuery
    from schedlab.analysis.explanation.reasons import Choice
    from schedlab.analysis.explanation.words import ProcessNames, WaitShare
    from schedlab.analysis.tables import Run
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.runs.replay import ReplayChanges
    from schedlab.trace import Trace


@dataclass(frozen=True)
class RerunChanges:
    """The changes of a rerun."""

    without: Sequence[str] = ()
    """Tasks (PID, name or group) that compute nothing."""
    policy: PolicyChoice | None = None
    attributes: Sequence[AttributeChange] = ()

    def __bool__(self) -> bool:
        """Returns whether there is any change."""
        return bool(self.without or self.policy or self.attributes)

    @property
    def title(self) -> str:
        """The changes in words."""
        without = (f"without {task}" for task in self.without)
        policy = (f"under {self.policy}",) if self.policy else ()
        return ", ".join((*without, *policy, *map(str, self.attributes)))


@dataclass(frozen=True)
class Rerun:
    """A rerun of the run without changes and one with changes."""

    how: str
    unchanged: Trace
    changed: Trace


@contextmanager
def compared_reruns(opened: Run, experiment: RerunChanges, begin_ns: int | None) -> Iterator[Rerun]:
    """Gives the reruns of `opened` without and with the changes;
    their files exist within the block.

    The reruns are branches of the run at `begin_ns` if its machine has branches. None: where the
    measured window begins. Otherwise they are replays in the simulator. So are reruns without a
    task, and reruns with attributes that hold since a task's fork (attributes without `begin_ns`).
    """
    from_a_moment = begin_ns is not None or not experiment.attributes
    with TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder)
        if from_a_moment and not experiment.without and _has_branches(opened):
            begin_ns = opened.window.begin_ns if begin_ns is None else begin_ns
            yield _rerun_as_branches(opened, experiment, begin_ns, path)
        else:
            yield _rerun_as_replays(opened, experiment, path)


def _has_branches(opened: Run) -> bool:
    """Returns whether the run's machine can continue it from a saved moment."""
    manifest = opened.manifest
    can_branch = isinstance(machine_named(opened.setup.machine), Branching)
    return can_branch and not {"branch", "recorded_from_ns"} & manifest.keys()


def _rerun_as_branches(opened: Run, experiment: RerunChanges, begin_ns: int, path: Path) -> Rerun:
    """Reruns the run as two branches at `begin_ns`, without and with the changes."""
    from schedlab.commands.execution import report_if_ended_by_signal
    from schedlab.runs import branch_runs
    from schedlab.runs.branches import open_branch_source
    from schedlab.units import format_time

    history = open_branch_source(opened.folder)
    branches = [BranchChanges(), BranchChanges(experiment.policy, (), tuple(experiment.attributes))]
    with report_if_ended_by_signal(lambda _: ""):
        unchanged, changed = branch_runs.perform_branches(
            history, begin_ns, branches, path / "branches"
        )
    how = f"a branch of the run from {format_time(begin_ns)} on"
    return Rerun(how, _read_trace(unchanged.folder), _read_trace(changed.folder))


def _rerun_as_replays(opened: Run, experiment: RerunChanges, path: Path) -> Rerun:
    """Reruns the run as two replays in the simulator, without and with the changes.

    If the simulator lacks the run's policy, the built-in policy that replays it best replaces it.
    """
    from schedlab.base.toolchain.policies import read_catalogue
    from schedlab.commands.execution import check_finished, perform
    from schedlab.commands.replay import find_stand_in, replay_limit_ns
    from schedlab.machines.outcome import MEASURABLE_STATUSES
    from schedlab.runs.recording import read_recording
    from schedlab.runs.request import replay_request

    how = "a replay in the simulator (docs/replay.md says how far to trust it)"
    if opened.setup.policy in read_catalogue():
        question = replay_request(opened.folder)
    else:
        policy, differences = find_stand_in(
            opened.folder, path / "stand-ins", [change.name for change in experiment.attributes]
        )
        question = replay_request(
            opened.folder,
            policies=(policy,),
            limit=replay_limit_ns(read_recording(opened.folder), opened.trace),
        )
        how = (
            f"a replay in the simulator under {policy}, which replaces {opened.setup.policy}: without a"
            f" change, it differs from the recording {differences}"
        )
    assert question.replay
    changed = replace(
        question,
        policies=(experiment.policy,) if experiment.policy else question.policies,
        settings=() if experiment.policy else question.settings,
        replay=question.replay.with_changes(_replay_changes(opened, experiment), experiment.title),
    )
    traces = []
    for name, request in (("unchanged", question), ("changed", changed)):
        finished = perform(replace(request, out=path / name).plan(), keep_runs=False)
        if (
            finished[0].outcome.status not in MEASURABLE_STATUSES
        ):  # some tasks of a machine never end
            check_finished(finished)
        traces.append(_read_trace(finished[0].folder))
    return Rerun(how, *traces)


def _replay_changes(opened: Run, experiment: RerunChanges) -> ReplayChanges:
    """Returns the changes in the form of a replay's request."""
    from schedlab.runs.replay import ReplayChanges

    idle = frozenset(life for task in experiment.without for life in opened.lives(task))
    attributes: dict[int, dict[str, int]] = {}
    for attribute in experiment.attributes:
        for life in opened.lives(attribute.target):
            attributes.setdefault(life, {})[attribute.name] = attribute.value
    return ReplayChanges(idle, attributes)


def _read_trace(folder: Path) -> Trace:
    from schedlab import trace
    from schedlab.machines.folder import TRACE_FILE

    return trace.read(folder / TRACE_FILE)


TIME = Parsed("TIME", parse_time)
ATTRIBUTE = Parsed("WHO:ATTRIBUTE=VALUE", parse_attribute)
_SHARES_MAX = 8
_CHOICES_MAX = 5
_KICKS_MAX = 4


def _parse_kinds(text: str) -> tuple[str, ...]:
    """Parses kinds of waits that are separated by commas. Raises ValueError."""
    from schedlab.analysis.explanation.waits import WAIT_KINDS

    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in WAIT_KINDS:
            raise ValueError(f"'{kind}' is not one of {', '.join(WAIT_KINDS)}")
    return kinds


@click.command()
@click.argument("run", type=EXISTING_PATH)
@click.option("--task", help="Select waits of this process: a PID, a name or a group.")
@click.option(
    "--kind",
    "kinds",
    type=Parsed("KINDS", _parse_kinds),
    help="Select kinds of waits: response (from the fork to the first run), "
    "wake-up (from a wake-up), turn (between two runs), found (since before "
    "the trace), blocked (for another process). Default: all but blocked.",
)
@click.option(
    "--worst",
    default=5,
    show_default=True,
    type=click.IntRange(0, 10_000),
    help="Number of longest waits to list one by one.",
)
@click.option(
    "--percentile",
    type=Number(0, 100),
    help="Select waits at least as long as this percentile of their kind, such as 99.",
)
@click.option(
    "--from",
    "begin_ns",
    type=TIME,
    help="Select waits that begin at or after this time, such as 1.2s.",
)
@click.option("--to", "end_ns", type=TIME, help="Select waits that begin before this time.")
@click.option(
    "--at", "at_ns", type=TIME, help="Select waits in progress at this time, such as 751.7ms."
)
@click.option(
    "--by",
    default="group",
    show_default=True,
    type=click.Choice(("group", "name", "pid")),
    help="Sum the table of delays by this.",
)
@click.option(
    "--path",
    metavar="TASK",
    help="Show this process's critical path from its fork to its exit instead.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="TASK",
    help="Repeat the run while this process computes nothing, and check whether waits attributed"
    " to it disappear. May be repeated.",
)
@policy_option("Also repeat the run under this POLICY or POLICY:PRESET.", default=())
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    type=ATTRIBUTE,
    help="Repeat the run with this attribute: io:priority=0, by a PID, a name or a"
    " group. May be repeated.",
)
@json_option
def explain(
    run: Path,
    kinds: tuple[str, ...] | None,
    path: str | None,
    without: tuple[str, ...],
    policies: tuple[PolicyChoice, ...],
    attributes: tuple[AttributeChange, ...],
    as_json: bool,
    **which: Any,
) -> None:
    """Explain why processes of a RUN waited: for which task, on which CPU, and why the policy decided so.

    RUN is a run's folder. Each wait is broken down by what its CPU did during it or, if the process waits for
    another one, by what that process did and waited for. The parts sum to the wait exactly.

    --without, --policy and --attribute repeat the run with a change: as a branch of it after --from, if its
    machine has branches, else as a replay. docs/explain.md has examples.
    """
    from schedlab.analysis.explanation.explained_waits import WaitQuery
    from schedlab.analysis.explanation.explained_waits import explain as explain_waits
    from schedlab.analysis.explanation.waits import QUEUED_KINDS
    from schedlab.analysis.tables import open_run
    from schedlab.base.toolchain.policies import known_policies

    question = WaitQuery(kinds=kinds or QUEUED_KINDS, **which)
    experiment = RerunChanges(without, policies[0] if policies else None, attributes)
    _check_times(question, experiment)
    if len(policies) > 1:
        raise WrongUsage("--policy: the run is repeated under one policy; give only one")
    opened = open_run(run)
    if path is not None:
        _print_path(opened.trace, path, as_json)
        return
    answer = explain_waits(opened.trace, question, known_policies())
    if as_json:
        rerun_result = (
            _compare_rerun(opened, question, experiment, answer).to_dict() if experiment else None
        )
        echo_json({**answer.to_dict(), **({"otherwise": rerun_result} if rerun_result else {})})
        return
    _print_explanation(answer, question.by)
    if experiment:
        _print_rerun(_compare_rerun(opened, question, experiment, answer), question.by)


def _check_times(question: WaitQuery, experiment: RerunChanges) -> None:
    """Raises WrongUsage for times that contradict each other."""
    begin_ns, end_ns = question.begin_ns, question.end_ns
    if begin_ns is not None and end_ns is not None and end_ns < begin_ns:
        raise WrongUsage("--to: ends before --from, so that no wait is selected; give a later time")
    if question.at_ns is None:
        return
    if begin_ns is not None or end_ns is not None:
        raise WrongUsage(
            "--at: selects the waits in progress at one time; leave it out, or leave out --from and --to"
        )
    if experiment:
        raise WrongUsage("--at: reruns are compared from a start time; use --from instead")


@dataclass(frozen=True)
class RerunDifference:
    """The result of a rerun: the change of each wait, which confirms or refutes the explanation."""

    title: str
    how: str
    difference: pl.DataFrame

    def to_dict(self) -> dict[str, object]:
        """Returns the result for JSON."""
        return {"what": self.title, "how": self.how, "waiting": self.difference.to_dicts()}


def _compare_rerun(
    opened: Run, question: WaitQuery, experiment: RerunChanges, answer: Explained
) -> RerunDifference:
    from schedlab.analysis.explanation.delays import check_attribution, waiting_time_changes

    begin_ns = opened.window.begin_ns if question.begin_ns is None else question.begin_ns
    with compared_reruns(opened, experiment, question.begin_ns) as reruns:
        compared = waiting_time_changes(
            reruns.unchanged, reruns.changed, question.kinds, question.task, begin_ns, question.by
        )
    blamed_names = [
        answer.names.name_by(life, question.by)
        for task in experiment.without
        for life in opened.lives(task)
    ]
    return RerunDifference(
        experiment.title, reruns.how, check_attribution(compared, answer.delays, blamed_names)
    )


def _print_rerun(rerun_difference: RerunDifference, by: str) -> None:
    """Prints the change of each wait. `by`: what rows are grouped by: group, name or pid."""
    blames = rerun_difference.difference["blamed_ns"].sum() > 0
    headings = (">attributed", "") if blames else ()
    table = new_table(
        f"Waiting {rerun_difference.title}",
        f"waiting ({by})",
        ">unchanged",
        ">changed",
        ">saved",
        *headings,
    )
    for row in rerun_difference.difference.iter_rows(named=True):
        before, after, blamed = row["before_ns"], row["after_ns"], row["blamed_ns"]
        verdict = {True: "confirmed", False: "not confirmed", None: ""}[row["confirmed"]]
        more = (duration(blamed), verdict) if blames else ()
        table.add_row(
            row["waiting"], duration(before), duration(after), duration(before - after), *more
        )
    print_full_width(table)
    print_result(f"The rerun was {rerun_difference.how}.")


def _print_explanation(answer: Explained, by: str) -> None:
    if not answer.waits:
        print_result("No process had such a wait.")
        return
    if answer.wakeups_unknown:
        say(
            "schedlab: the trace does not record wake-ups, so waits after a wake-up "
            "are not included"
        )
    idle_note = (
        f"; {duration(answer.waited_while_idle_ns)} of it while a CPU idled"
        if answer.waited_while_idle_ns
        else ""
    )
    waits = "1 wait" if answer.waits == 1 else f"{answer.waits:,} waits"
    print_result(f"{waits}, {duration(answer.waited_ns)} in all{idle_note}.")
    if len(answer.delays):
        print_full_width(_delays_table(answer.delays, by))
    for number, wait in enumerate(answer.longest, 1):
        _print_wait(number, wait, answer.names)


def _delays_table(delays: pl.DataFrame, by: str) -> Table:
    """Returns a row per pair of waiting and running task; per waiting
    task, the largest delay is first.
    """
    import polars as pl

    table = new_table("Delays", f"waiting ({by})", "caused by", ">time", ">share")
    total = pl.col("duration_ns").sum().over("waiting")
    previous_waiting = None
    for row in delays.with_columns(total_ns=total).iter_rows(named=True):
        shown = row["waiting"] if row["waiting"] != previous_waiting else ""
        previous_waiting = row["waiting"]
        fraction = row["duration_ns"] / row["total_ns"] if row["total_ns"] else 0.0
        table.add_row(shown, row["because_of"], duration(row["duration_ns"]), percent(fraction))
    return table


def _print_wait(number: int, explained: ExplainedWait, names: ProcessNames) -> None:
    """Prints one wait with its causes and the policy's decisions."""
    wait = explained.wait
    title = f"{number}. {explained.name}, {wait.kind}, at {milliseconds(wait.begin_ns, 4)}:"
    not_ended = "" if wait.ended else ", not ended"
    print_result(f"{title} {duration(wait.duration_ns)}{not_ended}")
    _print_shares(explained.shares, wait.duration_ns)
    for cpu, spent in explained.idle_elsewhere_ns.items():
        print_result(f"        meanwhile CPU {cpu} idled for {duration(spent)}")
    for place in explained.places:
        print_result(f"        {place.describe()}")
    _print_kicks(explained)
    _print_choices(explained.choices, names)


def _print_kicks(explained: ExplainedWait) -> None:
    """Prints the kicks during a wait under a sched_ext scheduler."""
    for kicks in explained.kicks[:_KICKS_MAX]:
        print_result(f"        {kicks.describe()}")
    hidden = len(explained.kicks) - _KICKS_MAX
    if hidden > 0:
        print_result(f"        {hidden} more kinds of kicks; --json lists them")
    elif explained.places and explained.idle_elsewhere_ns and not explained.kicks:
        print_result("        no CPU was kicked")


def _print_shares(shares: Sequence[WaitShare], total_ns: int) -> None:
    """Prints the causes of a wait with their times."""
    for share in shares[:_SHARES_MAX]:
        often = f" ({share.parts:,} times)" if share.parts > 1 else ""
        percentage = percent(share.duration_ns / total_ns) if total_ns else ""
        print_result(f"    {duration(share.duration_ns):>9} {percentage:>7}  {share.words}{often}")
    hidden_shares = shares[_SHARES_MAX:]
    if hidden_shares:
        spent = sum(share.duration_ns for share in hidden_shares)
        print_result(
            f"    {duration(spent):>9} {percent(spent / total_ns):>7}  "
            f"{len(hidden_shares)} more causes; --json lists them"
        )


def _print_choices(choices: Sequence[Choice], names: ProcessNames) -> None:
    """Prints the policy's decisions during a wait."""
    hidden = len(choices) - _CHOICES_MAX
    if hidden > 0:
        print_result(
            f"        the last {_CHOICES_MAX} of {len(choices)} decisions during the wait:"
        )
    for choice in choices[-_CHOICES_MAX:]:
        print_result(
            f"        {milliseconds(choice.time_ns, 4)}, CPU {choice.cpu}: {choice.describe(names)}"
        )


def _print_path(trace: Trace, task: str, as_json: bool) -> None:
    """Prints what a task did and waited for during its lifetime."""
    from schedlab.analysis.explanation.explained_waits import critical_path

    shares, _, total_ns = critical_path(trace, task)
    if as_json:
        echo_json({"duration_ns": total_ns, "parts": [asdict(share) for share in shares]})
        return
    print_result(f"{task}, from fork to exit: {duration(total_ns)}")
    _print_shares(shares, total_ns)
