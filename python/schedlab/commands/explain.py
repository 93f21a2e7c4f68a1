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
from schedlab.runs.branches import Attribute, Future, parse_attribute
from schedlab.units import parse_time

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from schedlab.analysis.explanation.explained_waits import Explained, ExplainedWait, WaitQuery
    from schedlab.analysis.explanation.reasons import Choice
    from schedlab.analysis.explanation.words import Names, Share
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
    attributes: Sequence[Attribute] = ()

    def __bool__(self) -> bool:
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
def rerun(opened: Run, experiment: RerunChanges, begin_ns: int | None) -> Iterator[Rerun]:
    """Gives the reruns of `opened` without and with the changes;
    their files exist within the block.

    The reruns are branches of the run at `begin_ns` if its machine has branches. None: where the
    measured window begins. Otherwise they are replays in the simulator. So are reruns without a
    task, and reruns with attributes that hold since a task's fork (attributes without `begin_ns`).
    """
    from_a_moment = begin_ns is not None or not experiment.attributes
    with TemporaryDirectory(prefix="schedlab-") as folder:
        place = Path(folder)
        if from_a_moment and not experiment.without and _has_branches(opened):
            begin_ns = opened.window.begin_ns if begin_ns is None else begin_ns
            yield _branched(opened, experiment, begin_ns, place)
        else:
            yield _replayed(opened, experiment, place)


def _has_branches(opened: Run) -> bool:
    manifest = opened.manifest
    known = isinstance(machine_named(opened.setup.machine), Branching)
    return known and not {"branch", "recorded_from_ns"} & manifest.keys()


def _branched(opened: Run, experiment: RerunChanges, begin_ns: int, place: Path) -> Rerun:
    from schedlab.commands.execution import ended_by_signal
    from schedlab.runs import branch_runs
    from schedlab.runs.branches import past
    from schedlab.units import format_time

    history = past(opened.folder)
    futures = [Future(), Future(experiment.policy, (), tuple(experiment.attributes))]
    with ended_by_signal(lambda _: ""):
        unchanged, changed = branch_runs.perform(history, begin_ns, futures, place / "branches")
    how = f"a branch of the run from {format_time(begin_ns)} on"
    return Rerun(how, _trace(unchanged.folder), _trace(changed.folder))


def _replayed(opened: Run, experiment: RerunChanges, place: Path) -> Rerun:
    from schedlab.commands.execution import check_finished, perform
    from schedlab.runs.request import of_recording

    question = of_recording(opened.folder)
    assert question.replay
    changed = replace(
        question,
        policies=(experiment.policy,) if experiment.policy else question.policies,
        settings=() if experiment.policy else question.settings,
        replay=question.replay.but(_replay_changes(opened, experiment), experiment.title),
    )
    traces = []
    for name, request in (("unchanged", question), ("changed", changed)):
        finished = perform(replace(request, out=place / name).plan(), keep_runs=False)
        check_finished(finished)
        traces.append(_trace(finished[0].folder))
    return Rerun("a replay in the simulator (docs/replay.md says how far to trust it)", *traces)


def _replay_changes(opened: Run, experiment: RerunChanges) -> ReplayChanges:
    from schedlab.runs.replay import ReplayChanges

    idle = frozenset(life for task in experiment.without for life in opened.lives(task))
    attributes: dict[int, dict[str, int]] = {}
    for attribute in experiment.attributes:
        for life in opened.lives(attribute.life_table):
            attributes.setdefault(life, {})[attribute.name] = attribute.value
    return ReplayChanges(idle, attributes)


def _trace(folder: Path) -> Trace:
    from schedlab import trace
    from schedlab.machines.folder import TRACE_FILE

    return trace.read(folder / TRACE_FILE)


TIME = Parsed("TIME", parse_time)
ATTRIBUTE = Parsed("WHO:ATTRIBUTE=VALUE", parse_attribute)
_SHARES_SHOWN = 8
_CHOICES_SHOWN = 5


def _kinds(text: str) -> tuple[str, ...]:
    from schedlab.analysis.explanation.waits import KINDS

    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"'{kind}' is not one of {', '.join(KINDS)}")
    return kinds


@click.command()
@click.argument("run", type=EXISTING_PATH)
@click.option("--task", help="Select waits of this process: a PID, a name or a group.")
@click.option(
    "--kind",
    "kinds",
    type=Parsed("KINDS", _kinds),
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
    attributes: tuple[Attribute, ...],
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
    from schedlab.analysis.explanation.waits import QUEUED
    from schedlab.analysis.tables import open_run
    from schedlab.base.toolchain.policies import known_policies

    question = WaitQuery(kinds=kinds or QUEUED, **which)
    experiment = RerunChanges(without, policies[0] if policies else None, attributes)
    _check_times(question, experiment)
    if len(policies) > 1:
        raise WrongUsage("--policy: the run is repeated under one policy; give only one")
    opened = open_run(run)
    if path is not None:
        _show_path(opened.trace, path, as_json)
        return
    answer = explain_waits(opened.trace, question, known_policies())
    if as_json:
        rerun_result = (
            _again(opened, question, experiment, answer).to_dict() if experiment else None
        )
        echo_json({**answer.to_dict(), **({"otherwise": rerun_result} if rerun_result else {})})
        return
    _show(answer, question.by)
    if experiment:
        _show_again(_again(opened, question, experiment, answer), question.by)


def _check_times(question: WaitQuery, experiment: RerunChanges) -> None:
    begin_ns, end_ns = question.begin_ns, question.end_ns
    if begin_ns is not None and end_ns is not None and end_ns < begin_ns:
        raise WrongUsage("--to: ends before --from, so that no wait is selected; give a later time")
    if question.at_ns is None:
        return
    if begin_ns is not None or end_ns is not None:
        raise WrongUsage(
            "--at: selects waits regardless of their beginning; leave out --from and --to"
        )
    if experiment:
        raise WrongUsage("--at: reruns are compared from a start time; use --from instead")


@dataclass(frozen=True)
class Again:
    """The result of a rerun: the change of each wait, which confirms or refutes the explanation."""

    title: str
    how: str
    difference: pl.DataFrame

    def to_dict(self) -> dict[str, object]:
        return {"what": self.title, "how": self.how, "waiting": self.difference.to_dicts()}


def _again(opened: Run, question: WaitQuery, experiment: RerunChanges, answer: Explained) -> Again:
    from schedlab.analysis.explanation.delays import confirmed, difference

    begin_ns = opened.window.begin_ns if question.begin_ns is None else question.begin_ns
    with rerun(opened, experiment, question.begin_ns) as done:
        compared = difference(
            done.unchanged, done.changed, question.kinds, question.task, begin_ns, question.by
        )
    because_of = [
        answer.names.called(life, question.by)
        for task in experiment.without
        for life in opened.lives(task)
    ]
    return Again(experiment.title, done.how, confirmed(compared, answer.delays, because_of))


def _show_again(again: Again, by: str) -> None:

    blames = again.difference["blamed_ns"].sum() > 0
    headings = (">attributed", "") if blames else ()
    table = new_table(
        f"Waiting {again.title}",
        f"waiting ({by})",
        ">unchanged",
        ">changed",
        ">saved",
        *headings,
    )
    for row in again.difference.iter_rows(named=True):
        before, after, blamed = row["before_ns"], row["after_ns"], row["blamed_ns"]
        verdict = {True: "confirmed", False: "not confirmed", None: ""}[row["confirmed"]]
        more = (duration(blamed), verdict) if blames else ()
        table.add_row(
            row["waiting"], duration(before), duration(after), duration(before - after), *more
        )
    print_full_width(table)
    print_result(f"The rerun was {again.how}.")


def _show(answer: Explained, by: str) -> None:

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
        _show_wait(number, wait, answer.names)


def _delays_table(delays: pl.DataFrame, by: str) -> Table:
    """Returns a row per pair of waiting and running task; per waiting
    task, the largest delay is first.
    """
    import polars as pl

    table = new_table("Delays", f"waiting ({by})", "caused by", ">time", ">share")
    total = pl.col("duration_ns").sum().over("waiting")
    last = None
    for row in delays.with_columns(total_ns=total).iter_rows(named=True):
        shown = row["waiting"] if row["waiting"] != last else ""
        last = row["waiting"]
        part = row["duration_ns"] / row["total_ns"] if row["total_ns"] else 0.0
        table.add_row(shown, row["because_of"], duration(row["duration_ns"]), percent(part))
    return table


def _show_wait(number: int, explained: ExplainedWait, names: Names) -> None:

    wait = explained.wait
    title = f"{number}. {explained.name}, {wait.kind}, at {milliseconds(wait.begin_ns, 4)}:"
    print_result(f"{title} {duration(wait.duration_ns)}")
    _show_shares(explained.shares, wait.duration_ns)
    for cpu, spent in explained.idle_elsewhere_ns.items():
        print_result(f"        meanwhile CPU {cpu} idled for {duration(spent)}")
    _show_choices(explained.choices, names)


def _show_shares(shares: Sequence[Share], total_ns: int) -> None:

    for share in shares[:_SHARES_SHOWN]:
        often = f" ({share.parts:,} times)" if share.parts > 1 else ""
        part = percent(share.duration_ns / total_ns) if total_ns else ""
        print_result(f"    {duration(share.duration_ns):>9} {part:>7}  {share.words}{often}")
    rest = shares[_SHARES_SHOWN:]
    if rest:
        spent = sum(share.duration_ns for share in rest)
        print_result(
            f"    {duration(spent):>9} {percent(spent / total_ns):>7}  {len(rest)} more causes; --json lists them"
        )


def _show_choices(choices: Sequence[Choice], names: Names) -> None:
    hidden = len(choices) - _CHOICES_SHOWN
    if hidden > 0:
        print_result(
            f"        the last {_CHOICES_SHOWN} of {len(choices)} decisions during the wait:"
        )
    for choice in choices[-_CHOICES_SHOWN:]:
        print_result(
            f"        {milliseconds(choice.time_ns, 4)}, CPU {choice.cpu}: {choice.describe(names)}"
        )


def _show_path(trace: Trace, task: str, as_json: bool) -> None:
    from schedlab.analysis.explanation.explained_waits import critical_path

    shares, _, total_ns = critical_path(trace, task)
    if as_json:
        echo_json({"duration_ns": total_ns, "parts": [asdict(share) for share in shares]})
        return
    print_result(f"{task}, from fork to exit: {duration(total_ns)}")
    _show_shares(shares, total_ns)
