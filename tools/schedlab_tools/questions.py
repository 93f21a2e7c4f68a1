# SPDX-License-Identifier: MIT
"""Defines questions about schedulers that the simulator answers, and their stored results.

`bench/questions/results.csv` has one row per question, measure, policy and seed. It keeps what CI cannot
repeat: the results of schedulers that are not installed, with the hash of their object and the date.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.base.files.atomic import atomic_write, file_hash, lock_folder
from schedlab.paths import ROOT

RESULTS_FILE = ROOT / "bench" / "questions" / "results.csv"
KEY = ("question", "measure", "policy", "seed")
COLUMNS = (*KEY, "value", "workload_sha256", "object_sha256", "date")
SEEDS = 5
TICK_NS = 4_000_000
BUILT_IN = ("eevdf:linux-7-3", "cfs:nice", "hsfq", "mlfq", "rr", "stride")
GROUPLESS = ("eevdf:linux-7-3", "cfs:nice")
"""Policies that model Linux's fair class without its groups."""
COMPILED = ("scx:bpfland",)
"""Schedulers of sched_ext, which CI cannot install."""
POLICIES = (*BUILT_IN, *COMPILED)
Row = Mapping[str, str]


@dataclass(frozen=True)
class Measure:
    """A figure that answers a question."""

    name: str
    title: str
    file: str
    """The workload, below workloads/files."""
    group: str
    """The group of tasks whose metric is the figure."""
    column: str
    """The metric's column in the table of groups."""
    cpus: int
    unit: str
    scale: float
    """What the metric is multiplied by to get the unit."""
    expected: float | None = None
    """The value that the attributes ask for; None: less is better."""
    at_most: bool = False
    """True if less than the expected value is as good."""
    tolerance: float = 0
    """The largest difference from the expected value, in the unit, that counts as expected."""
    tick_ns: int = TICK_NS
    agreement: str = ""
    """The metric of the agreement with Linux that says how far the figure may be trusted; "": none."""

    @property
    def path(self) -> Path:
        """The workload file."""
        return ROOT / "workloads" / "files" / self.file

    def is_met(self, mean: float) -> bool:
        """Returns whether a value is the expected one."""
        assert self.expected is not None
        difference = mean - self.expected
        return difference <= self.tolerance and (self.at_most or difference >= -self.tolerance)


@dataclass(frozen=True)
class Question:
    """A question, which a page of the gallery answers."""

    name: str
    title: str
    about: str
    measures: tuple[Measure, ...]
    policies: tuple[str, ...] = POLICIES


SHARE = ("share", 1, "%", 100.0)
QUESTIONS = (
    Question(
        "control-groups",
        "Do schedulers honour `cpu.weight` and `cpu.max`?",
        "Two groups have the weights 300 and 100, so the heavy one should get 75 % of the CPU. It has two tasks and"
        " the light one has six, so a scheduler that ignores groups gives it 25 %. In a second run, a group may use"
        " 20 ms in 100 ms, and would get 50 % without this limit.",
        (
            Measure(
                "weight", "the heavy group's share", "questions/weights.json", "heavy", *SHARE,
                expected=75, tolerance=2,
            ),
            Measure(
                "quota", "the limited group's share", "questions/quota.json", "limited", *SHARE,
                expected=20, at_most=True, tolerance=2,
            ),
        ),
        tuple(policy for policy in POLICIES if policy not in GROUPLESS),
    ),
    Question(
        "nice",
        "What do nice values of ±5 give?",
        "Two tasks compute on one CPU, at nice -5 and at nice 5. Linux's weights are 3121 and 335: 90.3 % for the"
        " first task.",
        (
            Measure(
                "share-250", "the share at nice -5 with ticks of 4 ms",
                "questions/nice.json", "nice-5", *SHARE,
                expected=90.3, tolerance=2, agreement="share_error_points",
            ),
            Measure(
                "share-1000", "the share at nice -5 with ticks of 1 ms",
                "questions/nice.json", "nice-5", *SHARE,
                expected=90.3, tolerance=2, tick_ns=1_000_000,
            ),
        ),
    ),
    Question(
        "affinity-churn",
        "Who starves when CPU sets change all the time?",
        "Six tasks change their CPU sets every few milliseconds, next to four tasks that compute, on four CPUs.",
        (
            Measure(
                "wanderer", "longest wait of a task that changes its CPU set", "hostile/affinity.json",
                "wanderer", "longest_wait_ns", 4, "ms", 1e-6,
            ),
            Measure(
                "busy", "longest wait of a computing task", "hostile/affinity.json", "busy",
                "longest_wait_ns", 4, "ms", 1e-6,
            ),
        ),
    ),
    Question(
        "editor-and-build",
        "How long does an editor wait next to a parallel build?",
        "An editor computes for 1 ms every 25 ms. Next to it, three processes fork compilers that take 5 to 40 ms.",
        tuple(
            Measure(
                f"p99-{cpus}cpu", f"wake-up latency, 99th percentile, {cpus} CPU{'s' * (cpus > 1)}",
                "agreement/build-and-editor.json", "editor", "wakeup_latency_p99_ns", cpus, "ms", 1e-6,
                agreement="wakeup_latency_p99_ns" if cpus == 1 else "",
            )
            for cpus in (1, 2)
        ),
    ),
)  # fmt: skip


def read_results(path: Path = RESULTS_FILE) -> list[Row]:
    """Returns the rows of the results."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add_results(rows: Iterable[Row], path: Path = RESULTS_FILE) -> None:
    """Adds rows to the results; rows of the same key are replaced. Rows of other questions are removed."""
    with lock_folder(ROOT / "build" / "questions"):
        all_rows = {tuple(row[name] for name in KEY): row for row in [*read_results(path), *rows]}
        known_keys = {
            (question.name, measure.name, policy)
            for question in QUESTIONS
            for measure in question.measures
            for policy in question.policies
        }
        current_keys = sorted(key for key in all_rows if key[:3] in known_keys)
        with atomic_write(path) as new, new.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(all_rows[key] for key in current_keys)


def values_of(
    rows: Sequence[Row], question: Question, measure: Measure, policy: str
) -> list[float]:
    """Returns the measured values, in the order of the seeds."""
    key = question.name, measure.name, policy
    return [float(row["value"]) for row in rows if tuple(row[name] for name in KEY[:3]) == key]


def is_current(row: Row, measure: Measure) -> bool:
    """Returns whether a result is of the present workload file."""
    return row["workload_sha256"] == file_hash(measure.path)
