# SPDX-License-Identifier: MIT
"""A slow and obvious implementation of the metrics: one loop over the records, one branch per
kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from schedlab.metrics.shares import NICE_FIRST, NICE_LAST, NICE_WEIGHTS
from schedlab.trace import AttributeKind, Kind, MarkKind, ProcessState
from trace_simulator import Record


@dataclass
class Span:
    """A period in one state."""

    state: str
    cause: str
    begin: int
    end: int
    begin_row: int
    end_row: int | None = None

    def inside(self, begin: int, end: int) -> int:
        """Returns its overlap with a window."""
        return max(0, min(self.end, end) - max(self.begin, begin))


@dataclass
class Life:
    """A process, from its fork to its end."""

    pid: int
    parent: Life | None
    fork_row: int
    fork: int | None
    """None: it lived before the trace."""
    name: str | None
    label: str | None
    tickets: int
    weight: int
    nice: int = 0
    first_run_row: int | None = None
    first_run: int | None = None
    exit_row: int | None = None
    exit: int | None = None
    status: int | None = None
    spans: list[Span] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    value_name: str | None = None
    reserved: dict[int, int] = field(default_factory=dict)
    """Its runtime, deadline and period."""
    job: int | None = None
    """The release of its current job."""
    jobs: list[tuple[int, int | None, int]] = field(default_factory=list)
    """Release, end and deadline of the counted jobs."""

    def descends_from(self, root: Life | None) -> bool:
        """Returns True if `root` is an ancestor."""
        at = self.parent
        while at is not None:
            if at is root:
                return True
            at = at.parent
        return False


COUNTED = {
    Kind.SCHEDULER_EXIT: "selections",
    Kind.WAKEUP: "wakeups",
    Kind.BLOCK: "blocks",
    Kind.YIELD: "yields",
    Kind.PREEMPT: "preemptions",
    Kind.MIGRATE: "migrations",
}


def since_fork(life: Life, time: int | None) -> int | None:
    """Returns the time since the fork, or None if there was no fork or no such event."""
    return None if life.fork is None or time is None else time - life.fork


def nice_weight(nice: int) -> int:
    """Uses the weights of metrics, which other tests compare with the policies' weights."""
    within = min(max(nice, NICE_FIRST), NICE_LAST)
    return int(NICE_WEIGHTS[within - NICE_FIRST])


class Naive:
    """Computes the metrics as a person with a pencil would."""

    def __init__(self, records: list[Record], cpus: int, cycles_per_second: int) -> None:
        self.records = records
        self.cpus = cpus
        self.cycles_per_second = cycles_per_second
        self.find_window()
        self.find_cpu_ends()
        self.texts = self.join_texts()
        self.lives: list[Life] = []
        self.now: dict[int, Life] = {}
        self.why: dict[int, str] = {}
        self.attributes_used: set[int] = set()
        self.policy = ""
        self.shares_by: int | None = None
        self.reported_values: list[tuple[Life, int, str | None, int]] = []
        for row, record in enumerate(records):
            self.take(row, record)
        for life in self.lives:
            self.job_done(life, len(records), 0)
        for life in self.lives:
            for span in life.spans:
                if span.end_row is None:
                    running = span.state == "running"
                    cpu = records[span.begin_row].cpu
                    span.end = self.cpu_end[cpu] if running else records[-1].time

    def find_window(self) -> None:
        """Finds the window from MARK_BEGIN to MARK_END."""
        self.begin_row, self.end_row = 0, len(self.records) - 1
        in_the_middle = any(record.kind == Kind.FOUND for record in self.records)
        self.root_pid = None if in_the_middle else 1
        has_started = False
        for row, record in enumerate(self.records):
            if record.kind == Kind.MARK and record.first == MarkKind.BEGIN and not has_started:
                has_started = True
                self.begin_row, self.root_pid = row, record.second or record.process
            elif record.kind == Kind.MARK and record.first == MarkKind.END and has_started:
                self.end_row = row
                break
        self.begin = self.records[self.begin_row].time
        self.end = self.records[self.end_row].time
        self.elapsed = self.end - self.begin

    def find_cpu_ends(self) -> None:
        """Finds the time of each CPU's last record."""
        self.cpu_end = {record.cpu: record.time for record in self.records}

    def join_texts(self) -> dict[int, str]:
        """Joins the text that begins in each row."""
        parts: dict[int, bytes] = {}
        owner: dict[int, int] = {}
        for row, record in enumerate(self.records):
            data = record.second.to_bytes(8, "little") + record.first.to_bytes(4, "little")
            if record.kind in (Kind.EXEC, Kind.POLICY):
                owner[record.cpu] = row
                parts[row] = data
            elif record.kind in (Kind.TUNABLE, Kind.FOUND, Kind.SAID):
                owner[record.cpu] = row
                parts[row] = b""
            elif record.kind == Kind.TEXT:
                parts[owner[record.cpu]] += data
        return {row: data.split(b"\0")[0].decode() for row, data in parts.items()}

    def in_window(self, row: int | None) -> bool:
        """Returns True if the row is measured."""
        return row is not None and self.begin_row <= row <= self.end_row

    def take(self, row: int, record: Record) -> None:  # noqa: C901 - a branch for each kind
        """Processes one record."""
        kind, process, time = record.kind, record.process, record.time
        life = self.now.get(process)
        if kind == Kind.FORK:
            self.fork(row, record)
        elif kind == Kind.FOUND:
            self.found(row, record)
        elif kind == Kind.SWITCH:
            self.switch(row, record)
        elif kind == Kind.WAKEUP:
            self.change(self.now[process], "runnable", "woken", row, time)
        elif kind == Kind.BLOCK:
            self.why[process] = "blocked"
        elif kind == Kind.EXIT:
            assert life
            life.exit_row, life.exit = row, time
            self.job_done(life, row, time)
            life.status = record.first - (1 << 32) if record.first >> 31 else record.first
        elif kind == Kind.EXEC:
            assert life
            life.name = self.texts[row]
        elif kind == Kind.POLICY and row <= self.end_row:
            self.policy = self.texts[row]
            self.shares_by = process
        elif kind == Kind.TUNABLE and row <= self.end_row:
            self.shares_by = process
        elif kind == Kind.MARK and record.first == MarkKind.GROUP:
            assert life
            life.label = record.second.to_bytes(8, "little").rstrip(b"\0").decode()
        elif kind == Kind.MARK and record.first == MarkKind.NAME:
            assert life
            life.value_name = record.second.to_bytes(8, "little").rstrip(b"\0").decode()
        elif kind == Kind.MARK and record.first == MarkKind.VALUE:
            assert life
            value = record.second - (1 << 64) if record.second >> 63 else record.second
            self.reported_values.append((life, time, life.value_name, value))
        elif kind == Kind.MARK and record.first == MarkKind.JOB:
            assert life
            if record.second:
                self.job_done(life, row, time)
            life.job = record.second or None
        elif kind == Kind.ATTRIBUTE and row <= self.end_row:
            self.attributes_used.add(record.first)
            assert life
            life.reserved[record.first] = record.second
            if record.first == AttributeKind.TICKETS:
                life.tickets = record.second
            elif record.first == AttributeKind.WEIGHT:
                life.weight = record.second
            elif record.first == AttributeKind.NICE:
                life.nice = record.second - ((1 << 64) if record.second >> 63 else 0)
        column = COUNTED.get(Kind(kind))
        if column and process and self.in_window(row):
            counts = self.now[process].counts
            counts[column] = counts.get(column, 0) + 1

    def job_done(self, life: Life, row: int, time: int) -> None:
        """Ends a process's job, because it is complete or the window ends."""
        if life.job is None or row < 0:
            return
        runtime, deadline, period = (life.reserved.get(kind, 0) for kind in (6, 7, 8))
        within = min(deadline or period, period) if runtime else 0
        late = life.job + within < self.end
        done = time if row <= self.end_row else None
        if within and self.begin <= life.job <= self.end and (done is not None or late):
            life.jobs.append((life.job, done, life.job + within))
        life.job = None

    def fork(self, row: int, record: Record) -> None:
        """Starts a life that inherits from its parent."""
        parent = self.now.get(record.process)
        if not record.process and not any(life.fork_row < 0 for life in self.lives):
            parent = self.lives[0] if self.lives else None  # the first process takes it in
        life = Life(
            record.first, parent, row, record.time,
            parent.name if parent else None, parent.label if parent else None,
            parent.tickets if parent else 1, parent.weight if parent else 5,
            parent.nice if parent else 0,
        )  # fmt: skip
        self.lives.append(life)
        self.now[record.first] = life
        self.change(life, "runnable", "forked", row, record.time)

    def found(self, row: int, record: Record) -> None:
        """Adds a life that began before the trace."""
        life = Life(record.process, None, -1, None, self.texts[row], None, 1, 5)
        self.lives.append(life)
        self.now[record.process] = life
        state = {1: "runnable", 2: "running", 3: "blocked"}[record.first]
        self.change(life, state, "found", row, record.time)

    def switch(self, row: int, record: Record) -> None:
        """Replaces the running process."""
        if record.first:
            state = {
                ProcessState.RUNNABLE: "runnable",
                ProcessState.BLOCKED: "blocked",
                ProcessState.ZOMBIE: "",
            }[ProcessState(record.second)]
            self.change(self.now[record.first], state, "left", row, record.time)
        if record.process:
            life = self.now[record.process]
            if life.first_run_row is None:
                life.first_run_row, life.first_run = row, record.time
            self.change(life, "running", "picked", row, record.time)

    def change(self, life: Life, state: str, cause: str, row: int, time: int) -> None:
        """Ends a process's state, and begins the next."""
        if life.spans:
            life.spans[-1].end, life.spans[-1].end_row = time, row
        if state:
            life.spans.append(Span(state, cause, time, time, row))

    # --- the tables

    def root(self) -> Life | None:
        """Returns the process that began the window."""
        best = None
        if self.root_pid is None:
            return None
        for life in self.lives:
            if life.pid == self.root_pid and (best is None or life.fork_row <= self.begin_row):
                best = life
        assert best
        return best

    def role(self, life: Life) -> str:
        """Returns a process's role in the measurement."""
        root = self.root()
        if root is None:
            return "other" if life.name and life.name.startswith("[") else "workload"
        if life is root:
            return "root"
        return "workload" if life.descends_from(root) else "other"

    def latencies(self, life: Life) -> list[int]:
        """Returns the times from wake-ups to runs, within the window."""
        return [
            span.end - span.begin
            for span in life.spans
            if span.cause == "woken"
            and self.in_window(span.begin_row)
            and self.in_window(span.end_row)
        ]

    def group(self, life: Life) -> str:
        """Returns a process's label or name; "(never ran)" for a child of the root that never
        ran.
        """
        root = self.root()
        if life.first_run_row is None and root is not None and life.parent is root:
            return "(never ran)"
        return life.label or life.name or f"process {life.pid}"

    def processes(self) -> list[dict[str, Any]]:
        """Returns the table of processes, without shares."""
        rows = []
        for life in sorted(self.lives, key=lambda life: (life.pid, life.fork_row)):
            if life.fork_row > self.end_row:
                continue
            if life.exit_row is not None and life.exit_row < self.begin_row:
                continue
            spent = {"running": 0, "runnable": 0, "blocked": 0}
            for span in life.spans:
                spent[span.state] += span.inside(self.begin, self.end)
            ended = life.exit_row is not None and life.exit_row <= self.end_row
            ran = life.first_run_row is not None and life.first_run_row <= self.end_row
            name = life.name or f"process {life.pid}"
            row: dict[str, Any] = {
                "pid": life.pid,
                "parent": life.parent.pid if life.parent else 0,
                "name": name,
                "group": self.group(life),
                "role": self.role(life),
                "fork_ns": life.fork,
                "first_run_ns": life.first_run if ran else None,
                "exit_ns": life.exit if ended else None,
                "status": life.status if ended else None,
                "turnaround_ns": since_fork(life, life.exit) if ended else None,
                "response_ns": since_fork(life, life.first_run) if ran else None,
                "running_ns": spent["running"],
                "waiting_ns": spent["runnable"],
                "blocked_ns": spent["blocked"],
                "longest_wait_ns": max(
                    (
                        span.inside(self.begin, self.end)
                        for span in life.spans
                        if span.state == "runnable"
                    ),
                    default=0,
                ),
                **{column: life.counts.get(column, 0) for column in COUNTED.values()},
                **latency_columns(self.latencies(life)),
                **self.job_columns([life]),
                "life": life,
            }
            rows.append(row)
        self.add_shares([row for row in rows if row["role"] == "workload"])
        return rows

    def add_shares(self, rows: list[dict[str, Any]]) -> None:
        """Adds the actual and the ideal shares."""
        weights = [self.weight(row["life"]) for row in rows]
        demands = []
        for row in rows:
            known = row["running_ns"] + row["blocked_ns"]
            part = row["running_ns"] / known if row["running_ns"] else 1
            goes_on = row["exit_ns"] is None
            demand_ns = row["running_ns"] + (row["waiting_ns"] * part if goes_on else 0)
            demands.append(demand_ns / max(self.elapsed, 1))
        due_shares = fill(weights, demands, self.cpus)
        knows_equal = self.shares_by == 0
        ideal = fill([1] * len(rows), demands, self.cpus) if knows_equal else due_shares
        all_running = sum(row["running_ns"] for row in rows)
        for row, weight, demand, allotted, due in zip(
            rows, weights, demands, ideal, due_shares, strict=True
        ):
            row["weight"] = weight
            row["demand_cpus"] = demand
            row["share"] = row["running_ns"] / all_running if all_running else None
            row["ideal_share"] = allotted / sum(ideal) if sum(ideal) else None
            both = row["share"] is not None and row["ideal_share"] is not None
            row["share_error_points"] = (
                100 * (row["share"] - due / sum(due_shares)) if both else None
            )

    def weight(self, life: Life) -> int:
        """Returns the weight of its share."""
        tickets = AttributeKind.TICKETS in self.attributes_used
        weight = AttributeKind.WEIGHT in self.attributes_used
        if self.shares_by == AttributeKind.TICKETS:
            return max(life.tickets, 1)
        if self.shares_by == AttributeKind.NICE:
            return nice_weight(life.nice)
        if self.shares_by == AttributeKind.WEIGHT or weight:
            return max(life.weight, 1)
        if tickets:
            return max(life.tickets, 1)
        return nice_weight(life.nice) if AttributeKind.NICE in self.attributes_used else 1

    def cpu_rows(self) -> list[dict[str, Any]]:
        """Returns the table of CPUs."""
        return [self.cpu_row(cpu) for cpu in range(self.cpus)]

    def cpu_row(self, cpu: int) -> dict[str, Any]:  # noqa: C901 - a branch for each kind
        """Computes one CPU's row, record by record."""
        row = dict.fromkeys(
            ("running_ns", "idle_ns", "scheduler_entries", "scheduler_cycles", "idle_loop_ns",
             "context_switches", "switches_to_idle", "switches_from_idle"), 0,
        )  # fmt: skip
        current, since = 0, None
        idle_since: int | None = None
        entered: tuple[int, int] | None = None

        def spend(until: int) -> None:
            if since is not None:
                part = Span("", "", since, until, 0).inside(self.begin, self.end)
                row["running_ns" if current else "idle_ns"] += part

        def stop_idling(until: int) -> None:
            if idle_since is not None:
                part = Span("", "", idle_since, until, 0).inside(self.begin, self.end)
                row["idle_loop_ns"] += part

        for index, record in enumerate(self.records):
            if record.cpu != cpu:
                continue
            if record.kind == Kind.START:
                since = idle_since = record.time
            elif record.kind == Kind.FOUND and record.first == ProcessState.RUNNING:
                spend(record.time)
                stop_idling(record.time)
                current, since, idle_since = record.process, record.time, None
            elif record.kind == Kind.SWITCH:
                spend(record.time)
                current, since = record.process, record.time
                if self.in_window(index):
                    row["context_switches"] += bool(record.process and record.first)
                    row["switches_to_idle"] += record.process == 0
                    row["switches_from_idle"] += record.first == 0
            elif record.kind == Kind.SCHEDULER_ENTER:
                stop_idling(record.time)
                idle_since = None
                entered = (index, record.second)
            elif record.kind == Kind.SCHEDULER_EXIT:
                assert entered
                if self.in_window(entered[0]) and self.in_window(index):
                    row["scheduler_entries"] += 1
                    row["scheduler_cycles"] += record.second - entered[1]
                if record.process == 0:
                    idle_since = record.time
        spend(self.cpu_end[cpu])
        stop_idling(self.cpu_end[cpu])
        result: dict[str, Any] = {"cpu": cpu, **row}
        if self.elapsed and any(record.kind == Kind.SCHEDULER_EXIT for record in self.records):
            cycles = self.elapsed * self.cycles_per_second / 1e9
            result["overhead_share"] = row["scheduler_cycles"] / cycles
            result["overhead_with_idle_share"] = (
                result["overhead_share"] + row["idle_loop_ns"] / self.elapsed
            )
        else:
            result["overhead_share"] = result["overhead_with_idle_share"] = None
        return result

    def population(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns the columns for a set of processes."""
        result: dict[str, Any] = {
            "processes": len(rows),
            "finished": sum(row["exit_ns"] is not None for row in rows),
        }
        for stem in ("turnaround", "response", "waiting"):
            values = [row[f"{stem}_ns"] for row in rows if row[f"{stem}_ns"] is not None]
            result[f"{stem}_mean_ns"] = sum(values) / len(values) if values else None
            result[f"{stem}_median_ns"] = quantile(values, 0.5)
            result[f"{stem}_max_ns"] = max(values, default=None)
        for column in ("running_ns", "blocked_ns", *COUNTED.values()):
            result[column] = sum(row[column] for row in rows)
        result["longest_wait_ns"] = max((row["longest_wait_ns"] for row in rows), default=None)
        waits = [wait for row in rows for wait in self.latencies(row["life"])]
        jobs = self.job_columns([row["life"] for row in rows])
        return {**result, **latency_columns(waits), **jobs}

    def job_columns(self, lives: list[Life]) -> dict[str, Any]:
        """Returns the number of jobs and their lateness."""
        jobs = [job for life in lives for job in life.jobs]
        late = [(self.end if done is None else done) - deadline for _, done, deadline in jobs]
        missed = [lateness for lateness in late if lateness > 0]
        responses = [done - release for release, done, _ in jobs if done is not None]
        return {
            "jobs": len(jobs),
            "misses": len(missed),
            "miss_share": len(missed) / len(jobs) if jobs else None,
            "job_response_max_ns": max(responses, default=None),
            "lateness_mean_ns": sum(late) / len(late) if late else None,
            "lateness_max_ns": max(late, default=None),
            "tardiness_mean_ns": sum(missed) / len(late) if late else None,
        }

    def groups(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the table of groups."""
        workload = [row for row in rows if row["role"] == "workload"]
        table = []
        for name in sorted({row["group"] for row in workload}):
            members = [row for row in workload if row["group"] == name]
            group: dict[str, Any] = {"group": name, **self.population(members)}
            for column in ("share", "ideal_share", "share_error_points"):
                values = [row[column] for row in members if row[column] is not None]
                group[column] = sum(values) if values else None
            seconds = self.elapsed / 1e9
            group["throughput_per_second"] = group["finished"] / seconds if seconds else None
            table.append(group)
        return table

    def values(self) -> list[dict[str, Any]]:
        """Returns the table of values that programs report."""
        return [
            {
                "pid": life.pid,
                "group": self.group(life),
                "time_ns": time,
                "name": name,
                "value": value,
            }
            for life, time, name, value in self.reported_values
        ]

    def said(self) -> list[dict[str, Any]]:
        """Returns the table of the policy's annotations."""
        table: dict[str, dict[str, Any]] = {}
        for row, record in enumerate(self.records):
            if record.kind != Kind.SAID or not self.in_window(row):
                continue
            words, other = self.texts[row], record.first - ((record.first >> 31) << 32)
            text = words.replace("{}", str(record.second), 1).replace("{}", str(other), 1)
            times = table.get(words, {"times": 0})["times"] + 1
            table[words] = {"words": words, "times": times, "last_ns": record.time, "last": text}
        return list(table.values())

    def summary(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns the single row, without the header's facts."""
        workload = [row for row in rows if row["role"] == "workload"]
        cpus = self.cpu_rows()
        result = self.population(workload)
        ends = [row["exit_ns"] for row in workload]
        forks = [row["fork_ns"] for row in workload]
        all_ended = bool(ends) and None not in ends + forks
        result["completion_ns"] = max(0, max(ends) - min(forks)) if all_ended else None
        longest = result["longest_wait_ns"]
        result["longest_wait_of"] = None
        for row in reversed(workload):
            if longest and row["longest_wait_ns"] == longest:
                result["longest_wait_of"] = f"{row['group']} ({row['pid']})"
        for role in ("root", "other"):
            result[f"{role}_running_ns"] = sum(
                row["running_ns"] for row in rows if row["role"] == role
            )
        for column in ("idle_ns", "scheduler_entries", "scheduler_cycles", "context_switches",
                       "switches_to_idle", "switches_from_idle"):  # fmt: skip
            result[column] = sum(row[column] for row in cpus)
        result["energy_proxy_ns"] = sum(
            row["running_ns"] + row["idle_ns"] // 10 + 20_000 * row["switches_from_idle"]
            for row in cpus
        )
        for column in ("overhead_share", "overhead_with_idle_share"):
            values = [row[column] for row in cpus if row[column] is not None]
            result[column] = sum(values) / len(cpus) if values else None
        result["fairness_turnaround"] = jain(
            [row["turnaround_ns"] for row in workload if row["turnaround_ns"] is not None]
        )
        result["fairness_share"] = jain(
            [
                row["share"] / due_share
                for row in workload
                if row["share_error_points"] is not None
                if (due_share := row["share"] - row["share_error_points"] / 100) > 1e-12
            ]
        )
        cycles = self.elapsed * self.cycles_per_second / 1e9
        finished = result["finished"]
        result["throughput_per_second"] = finished / self.elapsed * 1e9 if self.elapsed else None
        result["throughput_per_million_cycles"] = finished / cycles * 1e6 if cycles else None
        result.update(policy=self.policy, begin_ns=self.begin, end_ns=self.end,
                      elapsed_ns=self.elapsed, root_pid=self.root_pid)  # fmt: skip
        return result


def latency_columns(waits: list[int]) -> dict[str, Any]:
    """Returns median, 99th percentile and maximum."""
    return {
        "wakeup_latency_median_ns": quantile(waits, 0.5),
        "wakeup_latency_p99_ns": quantile(waits, 0.99),
        "wakeup_latency_max_ns": max(waits, default=None),
    }


def quantile(values: list[int], part: float) -> float | None:
    """Interpolates between the two nearest values."""
    if not values:
        return None
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def jain(values: list[float]) -> float | None:
    """Returns Jain's index."""
    squares = sum(value * value for value in values)
    return float(sum(values) ** 2 / (len(values) * squares)) if squares else None


def fill(weights: list[int], demands: list[float], cpus: float) -> list[float]:
    """Computes max-min fairness in rounds: a process that asks for less than its part gets
    its demand; the others share the rest.
    """
    wishes = [min(demand, 1.0) for demand in demands]
    got = [0.0] * len(wishes)
    hungry = set(range(len(wishes)))
    left = float(cpus)
    while hungry:
        weight = sum(weights[who] for who in hungry)
        content = {who for who in hungry if wishes[who] * weight <= left * weights[who]}
        if not content:
            for who in hungry:
                got[who] = left * weights[who] / weight
            break
        for who in content:
            got[who] = wishes[who]
            left -= wishes[who]
        hungry -= content
    return got
