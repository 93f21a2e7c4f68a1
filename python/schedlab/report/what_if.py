# SPDX-License-Identifier: MIT
"""The page of a recording: what happened, why tasks waited, and how other
policies serve the same demand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.explanation import Explained
from schedlab.base.display.markdown import listing, literal
from schedlab.base.display.names import visible_frame
from schedlab.base.display.numbers import (
    NO_VALUE,
    duration,
    format_count,
    format_index,
    percent,
    percent_change,
)
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.metrics import Metrics
from schedlab.metrics.registry import BY_COLUMN
from schedlab.report import charts
from schedlab.report.model import Block, Cell, Column, Page, Section, Table, Text, Tone
from schedlab.report.wait_reasons import WAIT_BEGINNING_TEXTS, waits_table
from schedlab.report.workload_tables import find_workloads, groups_table, metrics_table
from schedlab.runs.collection import Collection, StoredRun
from schedlab.runs.replay.accuracy import (
    COMPARED_METRICS,
    compare_groups,
    relative_error,
    replay_metrics,
)

PAGE_TITLE = "What if"
_PAIRS_MAX = 12
"""Maximum number of listed pairs of delaying and delayed tasks. The data has all."""
_GROUPS_MAX = 12


@dataclass(frozen=True)
class PolicyReplay:
    """A replay of the recording under a policy."""

    policy: str
    """The policy's name and changed tunables."""
    choice: PolicyChoice
    folders: Sequence[Path]
    """One run folder per recording."""
    metrics: Metrics
    """The pooled metrics of all runs: see `pooled`."""


@dataclass(frozen=True)
class WhatIf:
    """A recording, or several with different seeds, and its replays."""

    recorded: Sequence[StoredRun]
    measured: Metrics
    """Metrics of all recordings, with the names of tasks as in the replays."""
    explained: Explained
    """The explanation of the first recording."""
    replays: Sequence[PolicyReplay]
    reference: PolicyReplay
    """The replay under the recording's policy, or the nearest replay
    if that policy is not built in.
    """
    is_of_user: bool
    notes: Sequence[str]
    """Notes on the recording and the replays."""

    @cached_property
    def groups(self) -> pl.DataFrame:
        """Groups of processes in the replay under the recorded policy."""
        return visible_frame(compare_groups(self.measured, self.reference.metrics))

    @cached_property
    def replay_errors(self) -> Mapping[str, float | None]:
        """The error of the reference replay, by figure."""
        return {figure: relative_error(self.groups, figure) for figure in COMPARED_METRICS}

    @cached_property
    def recorded_row(self) -> dict[str, Any]:
        """The recording's row of the table of policies."""
        figure_values = replay_metrics(self.measured, self.measured)
        return {
            "policy": f"recorded: {self.recorded[0].setup.policy_title}",
            **figure_values,
            "change": None,
        }

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of the table of policies, sorted by waiting: `policy`,
        figures, `change` and `is_told`.

        `change`: mean waiting relative to the reference replay. `is_told`: the
        change exceeds the replay's error.
        """
        reference_waiting = replay_metrics(self.measured, self.reference.metrics)["waiting_mean_ns"]
        replay_error = self.replay_errors["waiting"]
        table_rows = []
        for replay in self.replays:
            replay_figures = replay_metrics(self.measured, replay.metrics)
            waiting = replay_figures["waiting_mean_ns"]
            change = (
                waiting / reference_waiting - 1
                if reference_waiting and waiting is not None
                else None
            )
            is_beyond_error = (
                change is not None and replay_error is not None and abs(change) > replay_error
            )
            table_rows.append(
                {
                    "policy": replay.policy,
                    **replay_figures,
                    "change": change,
                    "is_told": is_beyond_error,
                }
            )
        return sorted(table_rows, key=lambda row: row["waiting_mean_ns"] or 0.0)

    # --- texts in Markdown

    @property
    def trust_text(self) -> str:
        """How far the replays can be trusted."""
        policy, nearest = (
            literal(str(self.recorded[0].manifest["policy"])),
            literal(self.reference.policy),
        )
        subject = f"A replay under the recording's policy, {policy}, differs from the recording"
        if not self.is_of_user:
            subject = (
                f"The simulator does not have the recording's policy, {policy}. Of the policies here,"
                f" {nearest} is the most similar: its replay differs"
            )
        texts = [
            f"in {figure} by {percent(off)}"
            for figure, off in self.replay_errors.items()
            if off is not None
        ]
        if not texts:
            return (
                f"{subject} by an unknown amount: the recording has neither turnaround nor waiting."
            )
        return (
            f"{subject} {', '.join(texts)} (the mean over groups, weighted by their processes)."
            " Smaller differences between policies are not significant."
        )

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings: what happened, which task delayed others most, and how other policies would have done."""
        return (self._longest_wait_text, self._delayer_text, self._best_policy_text)

    @property
    def _longest_wait_text(self) -> str:
        if not self.explained.longest:
            return "According to the recording, no process waited for a CPU."
        longest = self.explained.longest[0]
        share = longest.shares[0]
        percentage = percent(share.duration_ns / longest.wait.duration_ns)
        return (
            f"**The longest wait** was {literal(longest.name)}'s, after {WAIT_BEGINNING_TEXTS[longest.wait.kind]}:"
            f" {duration(longest.wait.duration_ns)}. For {percentage} of it, {literal(share.words)}."
        )

    @property
    def _delayer_text(self) -> str:
        """Returns the finding on the task that delayed others most."""
        causes = (
            self.explained.delays.group_by("because_of")
            .agg(pl.col("duration_ns").sum())
            .sort(["duration_ns", "because_of"], descending=[True, False])
        )
        total_ns = int(causes["duration_ns"].sum())
        if not total_ns:
            return "According to the recording, no process delayed another one."
        cause, delayed_ns = str(causes["because_of"][0]), int(causes["duration_ns"][0])
        delay_text = (
            f"{literal(cause)} ran" if not cause.startswith("(") else f"a CPU was {literal(cause)}"
        )
        return (
            f"**Processes waited {duration(total_ns)}** for a CPU in total. For"
            f" {percent(delayed_ns / total_ns)} of this time, {delay_text}."
        )

    @property
    def _best_policy_text(self) -> str:
        """Returns the finding on the policy with the least waiting."""
        others = [row for row in self.rows if row["policy"] != self.reference.policy]
        best = next((row for row in others if row["change"] is not None), None)
        replay_error = self.replay_errors["waiting"]
        reference_text = f"{literal(self.reference.policy)}, replayed"
        if best is None:
            return "**Other policies**: there is no result on waiting."
        change = f"{percent(abs(best['change']))} {'less' if best['change'] < 0 else 'more'}"
        statement = (
            f"**Under {literal(best['policy'])}** processes would have waited {change} than under"
            f" {reference_text}"
        )
        if replay_error is None:
            return f"{statement}; the error of a replay is unknown."
        if best["is_told"]:
            return f"{statement}: more than the replay's own error of {percent(replay_error)}."
        return f"{statement}: not significant, because the replay's own error is {percent(replay_error)}."

    def to_dict(self) -> dict[str, Any]:
        """Returns all results for JSON."""
        return {
            "recorded": {
                "folders": [str(run.folder) for run in self.recorded],
                "policy": self.recorded[0].manifest["policy"],
                **replay_metrics(self.measured, self.measured),
            },
            "explained": self.explained.to_dict(),
            "own_policy": {
                "policy": self.reference.policy,
                "is_own": self.is_of_user,
                "error": dict(self.replay_errors),
                "groups": self.groups.to_dicts(),
            },
            "policies": self.rows,
            "replays": {
                replay.policy: [str(folder) for folder in replay.folders] for replay in self.replays
            },
            "notes": list(self.notes),
        }


def make_page(what_if: WhatIf) -> Page:
    """Returns the page of a what-if analysis."""
    sections: dict[str, list[Block]] = {
        "In short": [Text("\n".join(f"- {finding}" for finding in what_if.findings), "note")],
        "What happened": list(_recording_blocks(what_if)),
        "The worst waits": list(_longest_wait_blocks(what_if)),
        "Delays": list(_delay_blocks(what_if)),
        "Under other policies": list(_policy_blocks(what_if)),
        "More": [Text(f"These commands show more:\n\n{listing(_commands_text(what_if))}")],
    }
    recorded = what_if.recorded[0]
    return Page(
        name="index",
        title=PAGE_TITLE,
        lead=(
            f"{literal(recorded.setup.experiment)}, recorded on {format_count(recorded.setup.cpus, 'CPU')} under"
            f" {literal(recorded.setup.policy_title)}: what happened, why tasks waited, and how"
            " other policies serve the same demand in the simulator."
        ),
        sections=tuple(
            Section(title, tuple(blocks)) for title, blocks in sections.items() if blocks
        ),
    )


def _recording_blocks(what_if: WhatIf) -> Iterator[Block]:
    collection = Collection(what_if.recorded)
    (workload,) = find_workloads(collection)
    if what_if.notes:
        yield Text("\n".join(f"- {literal(note)}" for note in what_if.notes), "warning")
    yield metrics_table(collection, workload)
    groups = groups_table(collection, workload)
    if groups:
        yield groups


def _longest_wait_blocks(what_if: WhatIf) -> Iterator[Block]:
    longest = what_if.explained.longest
    if longest:
        yield waits_table("worst-waits", "The worst waits", [({}, wait) for wait in longest])


def _delay_blocks(what_if: WhatIf) -> Iterator[Block]:
    """Yields the table and the chart of the delays between tasks."""
    delays = what_if.explained.delays
    if not delays["duration_ns"].sum():
        return
    yield from charts.draw_if_possible(
        charts.causes,
        "causes",
        delays.select(pl.lit("recorded").alias("setup"), pl.all()),
        title="Causes of waiting",
        caption="All waits for a CPU in the measured window.",
    )
    total = delays["duration_ns"].sum()
    largest = delays.sort("duration_ns", descending=True).head(_PAIRS_MAX)
    yield Table(
        name="delays",
        title="Largest delays",
        columns=(
            Column("waiting", align="left"),
            Column("caused by", align="left"),
            Column("time"),
            Column("share of all waiting"),
        ),
        rows=tuple(
            (
                Cell(row["waiting"]),
                Cell(row["because_of"]),
                Cell(duration(row["duration_ns"])),
                Cell(percent(row["duration_ns"] / total)),
            )
            for row in largest.iter_rows(named=True)
        ),
        data=delays,
        caption=f"The {_PAIRS_MAX} largest; the files have all.",
    )


TIME_COLUMNS: Mapping[str, str] = {
    f"{column}_ns": BY_COLUMN[f"{column}_ns"].title
    for column in ("waiting_mean", "waiting_max", "wakeup_latency_max", "turnaround_mean")
}
"""Times in the table of policies."""


def row_texts(row: Mapping[str, Any]) -> dict[str, str]:
    """Returns a row of the table of policies as text, by heading."""
    fairness, change = row["fairness_turnaround"], row["change"]
    return {
        "policy": row["policy"],
        **{heading: _duration_text(row[name]) for name, heading in TIME_COLUMNS.items()},
        "finished": f"{row['finished']} of {row['processes']}",
        "fairness of turnaround": format_index(fairness),
        "switches": f"{row['context_switches']:,.0f}",
        CHANGE_HEADING: percent_change(change),
    }


CHANGE_HEADING = "waiting, change"


def _policy_blocks(what_if: WhatIf) -> Iterator[Block]:
    """Yields the table of the replays under all policies, and how far it can be trusted."""
    yield Text(what_if.trust_text, "note")
    rows = [tuple(map(Cell, row_texts(what_if.recorded_row).values()))]
    for row in what_if.rows:
        policy, *numbers, change = row_texts(row).values()
        tone: Tone = ("good" if row["change"] < 0 else "bad") if row["is_told"] else "muted"
        rows.append((Cell(policy), *map(Cell, numbers), Cell(change, tone)))
    yield Table(
        name="policies",
        title="The same demand under each policy",
        columns=tuple(
            Column(heading, align="left" if heading == "policy" else "right")
            for heading in row_texts(what_if.recorded_row)
        ),
        rows=tuple(rows),
        data=pl.DataFrame(what_if.rows),
        sections=(1,),
        caption=(
            f"The change is relative to a replay of {literal(what_if.reference.policy)}. All columns"
            " except switches cover the processes whose groups the recording measured; switches"
            f" are those of the whole machine. {format_count(len(what_if.recorded), 'replay')} per"
            " policy in the simulator, as long as the recording if it covers a whole machine. A"
            " change below the replay's own error is grey."
        ),
        meanings={"good": "waits less", "bad": "waits more", "muted": "not significant"},
    )
    yield _replay_error_table(what_if)


def _replay_error_table(what_if: WhatIf) -> Table:
    """Returns the table of each group's times in the recording and in the reference replay."""
    groups = what_if.groups.sort("waiting_ns", descending=True, nulls_last=True)
    return Table(
        name="nearness",
        title=f"The replay under {what_if.reference.policy} compared with the recording",
        columns=(
            Column("group", align="left"),
            Column("processes"),
            *(
                Column(title, figure)
                for figure in COMPARED_METRICS
                for title in ("recorded", "replayed")
            ),
        ),
        rows=tuple(
            (
                Cell(row["group"]),
                Cell(f"{row['processes']:,}"),
                *(
                    Cell(_duration_text(row[f"{figure}_{which}"]))
                    for figure in COMPARED_METRICS
                    for which in ("ns", "replayed_ns")
                ),
            )
            for row in groups.head(_GROUPS_MAX).iter_rows(named=True)
        ),
        data=groups,
        caption=(
            f"Means of the {_GROUPS_MAX} groups that waited longest; the files have all. Turnaround"
            " covers processes that were forked and ended in the recording."
        ),
    )


def _duration_text(nanoseconds: float | None) -> str:
    """Returns a duration in words; a dash for None."""
    return NO_VALUE if nanoseconds is None else duration(nanoseconds)


def _commands_text(what_if: WhatIf) -> str:
    """Returns the commands that repeat the replays."""
    folder = what_if.recorded[0].folder
    return "\n".join(
        (
            f"./schedlab explain {folder}",
            f"./schedlab monitor {folder}",
            f"./schedlab compare {folder} {what_if.reference.folders[0]}",
        )
    )
