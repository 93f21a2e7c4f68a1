# SPDX-License-Identifier: MIT
"""Builds the tables of one whole trace; `runs` contains the measured window."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import yaml

from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.errors import WrongUsage
from schedlab.metrics import cpu_intervals, scheduler_intervals, state_intervals
from schedlab.metrics.columns import nullable
from schedlab.metrics.lives import Lives, lives
from schedlab.metrics.processes import names_and_groups
from schedlab.metrics.unknown import (
    has_unknown_activity,
    wakeups_unknown,
    without_columns,
    without_unknown,
)
from schedlab.metrics.window import measured_window
from schedlab.trace import (
    DispatchCallback,
    KickFlag,
    Kind,
    MarkKind,
    Trace,
    annotation_text,
    mark_text,
)
from schedlab.trace.format import signed
from schedlab.trace.model import Integers
from schedlab.trace.timeline import sort_key

_COLUMN_TYPES: Mapping[str, type[pl.DataType]] = {
    "integer": pl.Int64,
    "text": pl.String,
    "yes or no": pl.Boolean,
}


@dataclass(frozen=True)
class Column:
    """A column of a table. Times are in nanoseconds since boot."""

    name: str
    type_: str
    """One of "integer", "text" and "yes or no"."""
    meaning: str


@dataclass(frozen=True)
class TableDescription:
    """The documentation of a table: its columns and what a row represents."""

    name: str
    row: str
    """What a row represents."""
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """The columns' Polars types."""
        return pl.Schema({column.name: _COLUMN_TYPES[column.type_] for column in self.columns})


def _read_descriptions() -> dict[str, TableDescription]:
    text = Path(__file__).with_name("described.yaml").read_text("utf-8")
    content = yaml.safe_load(text)
    shared = content["columns"]

    def column(name: str, dtype: str | None) -> Column:
        """Returns the description of a column."""
        kind, _, meaning = (dtype or shared[name]).partition(": ")
        return Column(name, kind, meaning)

    return {
        name: TableDescription(
            name, table["row"], tuple(column(*item) for item in table["columns"].items())
        )
        for name, table in content["tables"].items()
    }


TABLE_DESCRIPTIONS: Mapping[str, TableDescription] = _read_descriptions()
"""All tables by name."""


_WAIT_KIND_BY_CAUSE = {"forked": "response", "woken": "wake-up", "found": "found"}
"""Kinds of waits by cause; any other cause is a wait between time slices."""


_BUILT_IN_QUEUE, _LOCAL_QUEUE = 1 << 63, 3 << 62
_NO_QUEUE, _GLOBAL_QUEUE = _BUILT_IN_QUEUE, _BUILT_IN_QUEUE + 1
"""IDs of dispatch queues, as in Linux: SCX_DSQ_FLAG_BUILTIN, _LOCAL_ON, _INVALID and _GLOBAL."""


def _queue_name(number: int) -> str:
    """Returns the name of a dispatch queue; "" for none."""
    if number & _LOCAL_QUEUE == _LOCAL_QUEUE:
        return f"the local DSQ of CPU {number & 0xFFFFFFFF}"
    return {_NO_QUEUE: "", _GLOBAL_QUEUE: "the global DSQ"}.get(number, f"DSQ {number:#x}")


def _kick_flags(number: int) -> str:
    return ",".join(flag.name.lower() for flag in KickFlag if number & flag)


class TraceTables:
    """The tables of a trace that `schedlab.trace.validate` accepted."""

    def __init__(self, trace: Trace) -> None:
        """Prepares the tables of a trace; each is computed when it is first used."""
        self.trace = trace

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table of this name (TABLE_DESCRIPTIONS), without `run`.

        Rows are sorted by time; states and stays are sorted by process first. Raises KeyError for
        an unknown name.
        """
        schema = TABLE_DESCRIPTIONS[name].schema
        frame: pl.DataFrame = getattr(self, name.replace("-", "_"))
        return frame.select(pl.col(name).cast(schema[name]) for name in schema if name != "run")

    def lives_of(self, task: str) -> list[int]:
        """Returns the processes with this PID, name or group. Raises WrongUsage if there are none."""
        matches = (pl.col("name") == task) | (pl.col("group") == task)
        if task.isdecimal():
            matches = pl.col("pid") == int(task)
        lives: list[int] = self.processes.filter(matches)["life"].to_list()
        if not lives:
            names = self.processes["group"].unique().sort().to_list()
            raise WrongUsage(describe_unknown_name("process", task, names))
        return lives

    @cached_property
    def lives(self) -> Lives:
        """The trace's processes and their steps."""
        return lives(self.trace)

    @cached_property
    def life_names(self) -> pl.DataFrame:
        """Columns life, name, group."""
        names = names_and_groups(self.trace, self.lives, measured_window(self.trace))
        return names.with_row_index("life").cast({"life": pl.Int64})

    @cached_property
    def states(self) -> pl.DataFrame:
        """schedlab.metrics.state_intervals with name, group, duration_ns; `next`: why the state
        ended; `next_by`: the process that ended it.
        """
        intervals = state_intervals(self.trace, self.lives)
        return self._with_names(intervals).with_columns(
            pl.col("cause").cast(pl.String),
            duration_ns=pl.col("end_ns") - pl.col("begin_ns"),
            next=pl.col("cause").cast(pl.String).shift(-1).over("life"),
            next_by=pl.col("by").shift(-1).over("life"),
        )

    @cached_property
    def processes(self) -> pl.DataFrame:
        """One row per life."""
        life_table = self.lives
        state_times = self.states.group_by("life").agg(
            pl.col("duration_ns").filter(pl.col("state") == state).sum().alias(name)
            for state, name in (
                ("running", "running_ns"),
                ("runnable", "waiting_ns"),
                ("blocked", "blocked_ns"),
            )
        )
        status = pl.Series(self._values_at("first", life_table.exit_row)).cast(pl.UInt32)
        frame = pl.DataFrame(
            {
                "life": np.arange(len(life_table)),
                "pid": life_table.pid,
                "parent_life": nullable(life_table.parent, life_table.parent < 0),
                "fork_ns": self._times_at(life_table.fork_row),
                "first_run_ns": nullable(life_table.first_run_ns, life_table.first_run_row < 0),
                "exit_ns": self._times_at(life_table.exit_row),
                "status": status.reinterpret(signed=True),
            }
        )
        frame = (
            self._with_names(frame)
            .join(state_times, on="life", how="left", maintain_order="left")
            .with_columns(status=pl.when(pl.col("exit_ns").is_not_null()).then("status"))
        )
        if has_unknown_activity(self.trace):
            begin, end = pl.col("begin_ns"), pl.col("exit_ns").fill_null(self.trace.end_ns)
            known_ns = pl.sum_horizontal("running_ns", "waiting_ns", "blocked_ns")
            begins = pl.Series(self._values_at("time_ns", life_table.begin_row))
            frame = without_unknown(
                frame.with_columns(begin_ns=begins).with_columns(unknown_ns=end - begin - known_ns)
            ).drop("begin_ns", "unknown_ns")
        return without_columns(frame) if wakeups_unknown(self.trace) else frame

    @cached_property
    def stays(self) -> pl.DataFrame:
        """Intervals when a process had a CPU."""
        exit_rows = nullable(self.lives.exit_row, self.lives.exit_row < 0)
        ends = pl.DataFrame({"life": np.arange(len(self.lives)), "exit_row": exit_rows})
        return (
            self.states.filter(pl.col("state") == "running")
            .join(ends, on="life", how="left", maintain_order="left")
            .with_columns(
                left=pl.when(pl.col("end_row").is_null())
                .then(None)
                .when(pl.col("next").is_null() & pl.col("exit_row").is_not_null())
                .then(pl.lit("ended"))
                .otherwise("next")
            )
        )

    @cached_property
    def waits(self) -> pl.DataFrame:
        """Intervals when a process was runnable without a CPU."""
        table = self.states.filter(pl.col("state") == "runnable")
        table = table.with_columns(
            kind=pl.col("cause").replace_strict(
                _WAIT_KIND_BY_CAUSE, default="turn", return_dtype=pl.String
            ),
            cpu=pl.Series(self._start_cpus(table)),
            ran=pl.col("end_row").is_not_null(),
        )
        if wakeups_unknown(self.trace):
            return table.filter(pl.col("kind") != "wake-up")
        return table

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Intervals when a process was blocked."""
        table = self.states.filter(pl.col("state") == "blocked")
        return table.with_columns(
            reason=pl.col("cause").str.strip_prefix("blocked: "),
            woken=pl.col("end_row").is_not_null(),
            waker_life=self._lives_at(table["next_by"], table["end_row"]),
        )

    @cached_property
    def wakeups(self) -> pl.DataFrame:
        """Wake-ups."""
        table = self.waits.filter(pl.col("kind") == "wake-up")
        return table.with_columns(
            time_ns="begin_ns",
            waker_life=self._lives_at(table["by"], table["begin_row"]),
            latency_ns=pl.when("ran").then("duration_ns"),
        ).sort("begin_row")

    @cached_property
    def decisions(self) -> pl.DataFrame:
        """Decisions of policies."""
        rows = self.trace.rows(Kind.DECISION)
        table = self._record_rows(rows).with_columns(
            waiting=pl.Series(self._values_at("first", rows)),
            remark=pl.Series(self._values_at("second", rows)).reinterpret(signed=True),
        )
        return self._with_names(table)

    @cached_property
    def dispatches(self) -> pl.DataFrame:
        """Entries of processes into dispatch queues of sched_ext."""
        rows = self.trace.rows(Kind.DISPATCH)
        table = self._record_rows(rows).with_columns(
            queue=pl.Series(
                [_queue_name(number) for number in self.trace.column("second")[rows].tolist()],
                dtype=pl.String,
            ),
            callback=self._callbacks_at(rows),
        )
        return self._with_names(table)

    @cached_property
    def kicks(self) -> pl.DataFrame:
        """Kicks of CPUs by a sched_ext scheduler."""
        rows = self.trace.rows(Kind.KICK)
        second = self._values_at("second", rows)
        flags = {number: _kick_flags(number) for number in range(1 << len(KickFlag))}
        return self._record_rows(rows).with_columns(
            kicked_cpu=pl.Series(second & 0xFFFFFFFF, dtype=pl.Int64),
            flags=pl.Series(second >> 32, dtype=pl.Int64).replace_strict(
                flags, default="", return_dtype=pl.String
            ),
            callback=self._callbacks_at(rows),
        )

    def _callbacks_at(self, rows: Integers) -> pl.Series:
        """Returns the names of the callbacks of DISPATCH and KICK records."""
        names = {int(callback): callback.name.lower() for callback in DispatchCallback}
        numbers = pl.Series(self._values_at("first", rows), dtype=pl.Int64)
        callbacks: pl.Series = numbers.replace_strict(names, default="", return_dtype=pl.String)
        return callbacks

    @cached_property
    def said(self) -> pl.DataFrame:
        """Annotations of policies in words."""
        texts = self.trace.texts
        rows = self.trace.rows(Kind.SAID)
        row_texts = texts.filter(pl.col("row").is_in(rows.tolist()))
        row_numbers = row_texts["row"].to_numpy()
        values = zip(
            row_texts["text"],
            self._values_at("first", row_numbers).tolist(),
            self._values_at("second", row_numbers).tolist(),
            strict=True,
        )
        words = [annotation_text(text, first, second) for text, first, second in values]
        return self._record_rows(row_numbers).with_columns(text=pl.Series(words, dtype=pl.String))

    @cached_property
    def switches(self) -> pl.DataFrame:
        """Context switches of all CPUs."""
        rows = self.trace.rows(Kind.SWITCH)
        table = self._record_rows(rows)
        previous_pid = pl.Series(self._values_at("first", rows)).cast(pl.Int64)
        row = pl.Series(rows)
        return table.with_columns(from_life=self._lives_at(previous_pid, row), to_life="life")

    @cached_property
    def migrations(self) -> pl.DataFrame:
        """Migrations between CPUs."""
        rows = self.trace.rows(Kind.MIGRATE)
        table = self._record_rows(rows).with_columns(
            from_cpu=pl.Series(self._values_at("first", rows)),
            to_cpu=pl.Series(self._values_at("second", rows)),
        )
        return self._with_names(table)

    @cached_property
    def marks(self) -> pl.DataFrame:
        """Marks written by programs."""
        rows = self.trace.rows(Kind.MARK)
        kinds = [MarkKind(kind) for kind in self._values_at("first", rows).tolist()]
        values = self._values_at("second", rows).tolist()
        is_text = [kind in (MarkKind.GROUP, MarkKind.NAME) for kind in kinds]
        table = self._record_rows(rows).with_columns(
            mark=pl.Series([kind.name.lower() for kind in kinds], dtype=pl.String),
            text=pl.Series(
                [
                    mark_text(value) if has_text else None
                    for value, has_text in zip(values, is_text, strict=True)
                ],
                dtype=pl.String,
            ),
            value=pl.Series(
                [
                    None if has_text else signed(value)
                    for value, has_text in zip(values, is_text, strict=True)
                ],
                dtype=pl.Int64,
            ),
        )
        return self._with_names(table)

    @cached_property
    def cpus(self) -> pl.DataFrame:
        """One row per CPU with records."""
        length = pl.col("end_ns") - pl.col("begin_ns")
        activity = (
            cpu_intervals(self.trace)
            .group_by("cpu", maintain_order=True)
            .agg(
                pl.col("begin_ns").min(),
                pl.col("end_ns").max(),
                running_ns=length.filter(pl.col("pid") != 0).sum(),
                idle_ns=length.filter(pl.col("pid") == 0).sum(),
                switches=pl.len() - 1,
            )
        )
        if not self.trace.has(Kind.SCHEDULER_ENTER):
            return activity.with_columns(scheduler_ns=pl.lit(None, pl.Int64))
        scheduler_times = (
            scheduler_intervals(self.trace)
            .filter(pl.col("what") == "scheduler")
            .group_by("cpu")
            .agg(scheduler_ns=length.sum())
        )
        return activity.join(
            scheduler_times, on="cpu", how="left", maintain_order="left"
        ).with_columns(pl.col("scheduler_ns").fill_null(0))

    def _start_cpus(self, waits: pl.DataFrame) -> Integers:
        """Returns the CPU where each wait begins.

        A wake-up record contains the CPU. A preempted process waits where it ran. For a forked or
        found process, the first MIGRATE or SWITCH record decides.
        """
        cpu_by_row = np.full(len(self.trace) + 1, -1)
        woken = self.trace.rows(Kind.WAKEUP)
        cpu_by_row[woken] = self._values_at("second", woken)
        starting = waits.filter(pl.col("cause").is_in(["forked", "found"]))
        cpu_by_row[starting["begin_row"].to_numpy()] = self._first_cpus(starting)
        start_cpus = cpu_by_row[waits["begin_row"].to_numpy()]
        return np.where(start_cpus >= 0, start_cpus, waits["cpu"].to_numpy())

    def _first_cpus(self, starting: pl.DataFrame) -> Integers:
        """Returns the CPU where each process first waits; -1 if the trace does not contain it."""
        pid, row = starting["pid"].to_numpy(), starting["begin_row"].to_numpy()
        moves = self.trace.rows(Kind.MIGRATE, Kind.SWITCH)
        process = self._values_at("process", moves)
        order = np.lexsort((moves, process))
        moves, process = moves[order], process[order]
        first_moves = np.searchsorted(sort_key(process, moves), sort_key(pid, row))
        first_moves = np.minimum(first_moves, max(len(moves) - 1, 0))
        if len(moves) == 0:
            return np.full(len(starting), -1)
        moved = self._values_at("kind", moves[first_moves]) == int(Kind.MIGRATE)
        cpu = np.where(
            moved,
            self._values_at("first", moves[first_moves]),
            self._values_at("cpu", moves[first_moves]),
        )
        return np.where(
            (process[first_moves] == pid) & (moves[first_moves] > row), cpu.astype(np.int64), -1
        )

    def _record_rows(self, rows: Integers) -> pl.DataFrame:
        """Returns some records with the columns time_ns, cpu, life, pid."""
        process = pl.Series(self._values_at("process", rows)).cast(pl.Int64)
        return pl.DataFrame(
            {
                "time_ns": self._values_at("time_ns", rows),
                "cpu": self._values_at("cpu", rows),
                "life": self._lives_at(process, pl.Series(rows, dtype=pl.Int64)),
                "pid": process,
            }
        )

    def _lives_at(self, pid: pl.Series, row: pl.Series) -> pl.Series:
        """Returns the process that had each PID at each row; null for PID 0 and unknown PIDs."""
        lives = self.lives.life_at(
            pid.fill_null(0).to_numpy().astype(np.int64), row.fill_null(-1).to_numpy()
        )
        return nullable(lives, (lives < 0) | (pid.fill_null(0) == 0).to_numpy())

    def _with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Adds the columns `name` and `group` of each row's process."""
        return frame.with_columns(pl.col("life").cast(pl.Int64)).join(
            self.life_names, on="life", how="left", maintain_order="left"
        )

    def _values_at(self, name: str, rows: Integers) -> Integers:
        return self.trace.at(name, rows) if len(self.trace) else rows

    def _times_at(self, rows: Integers) -> pl.Series:
        """Returns the times in ns of these rows."""
        return nullable(self._values_at("time_ns", rows), rows < 0)
