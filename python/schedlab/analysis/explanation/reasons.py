# SPDX-License-Identifier: MIT
"""Collects the reasons for a policy's decisions while a process waited."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from schedlab.analysis.explanation.blame import Blame
from schedlab.analysis.explanation.waits import Wait
from schedlab.analysis.explanation.words import LifeNames
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.base.display.numbers import duration
from schedlab.base.toolchain.policies import Policy
from schedlab.trace import Kind


@dataclass(frozen=True)
class Choice:
    """A decision of a policy, or an annotation in words."""

    time_ns: int
    cpu: int
    life: int | None
    """The process that was picked, or that the annotation is about."""
    waiting: int | None
    """Number of waiting processes; None for an annotation."""
    words: str
    """The reason; "" if the policy gives none."""

    def describe(self, names: LifeNames) -> str:
        """Returns the choice as a clause: "typist 7 was picked, 2 waited: level 2"."""
        about = names[self.life] if self.life is not None else "no process"
        picked = "" if self.waiting is None else f" was picked, {self.waiting} waited"
        return f"{about}{picked}{f': {self.words}' if self.words else ''}"


class PolicyChoices:
    """The decisions and annotations in a trace. `known`: policies by name."""

    def __init__(self, tables: TraceTables, known: Mapping[str, Policy]) -> None:
        """Reads the policies that were active, and when."""
        self._tables = tables
        self._known = known

    def during(self, wait: Wait, blames: Sequence[Blame]) -> list[Choice]:
        """Returns the choices made at the CPU where a process waited, in order. The last is its
        own, if it was picked there.
        """
        waited_on_cpu = [part for part in blames if not part.chain and part.cpu is not None]
        spans: dict[int, tuple[int, int]] = {}
        for part in waited_on_cpu:
            assert part.cpu is not None
            begin, end = spans.get(part.cpu, (part.begin_ns, part.end_ns))
            spans[part.cpu] = min(begin, part.begin_ns), max(end, part.end_ns)
        reasons = [
            reason
            for cpu, (begin, end) in spans.items()
            for reason in (*self._decisions(cpu, begin, end), *self._annotations(cpu, begin, end))
            if begin < reason.time_ns <= end
        ]
        return sorted(reasons, key=lambda reason: reason.time_ns)

    def _decisions(self, cpu: int, begin_ns: int, end_ns: int) -> list[Choice]:
        """Returns the decisions at a CPU within an interval."""
        rows = self._rows_within("decisions", cpu, begin_ns, end_ns)
        return [
            Choice(row["time_ns"], cpu, row["life"], row["waiting"], self._annotation_text(row))
            for row in rows.iter_rows(named=True)
        ]

    def _annotations(self, cpu: int, begin_ns: int, end_ns: int) -> list[Choice]:
        """Returns the annotations in words at a CPU within an interval."""
        rows = self._rows_within("said", cpu, begin_ns, end_ns)
        return [
            Choice(row["time_ns"], cpu, row["life"], None, row["text"])
            for row in rows.iter_rows(named=True)
        ]

    def _rows_within(self, name: str, cpu: int, begin_ns: int, end_ns: int) -> pl.DataFrame:
        return self._tables.table(name).filter(
            (pl.col("cpu") == cpu) & pl.col("time_ns").is_between(begin_ns, end_ns)
        )

    def _annotation_text(self, row: Mapping[str, int]) -> str:
        """Returns the annotation of a decision in the words of the policy active at that time."""
        times, names = self._active_policies
        at = bisect_right(times, row["time_ns"]) - 1
        policy = self._known.get(names[at].partition(":")[0]) if at >= 0 else None
        if policy is None or policy.remark_kind == "none":
            return policy.remark if policy else ""
        number = row["remark"]
        return policy.remark.replace(
            "{}", duration(number) if policy.remark_kind == "time" else str(number)
        )

    @cached_property
    def _active_policies(self) -> tuple[list[int], list[str]]:
        """The times when policies became active, and their names."""
        trace = self._tables.trace
        policy_names = trace.texts.filter(pl.col("row").is_in(trace.rows(Kind.POLICY).tolist()))
        times = (
            trace.at("time_ns", policy_names["row"].to_numpy()).tolist()
            if len(policy_names)
            else []
        )
        return times, policy_names["text"].to_list()
