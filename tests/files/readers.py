# SPDX-License-Identifier: MIT
"""Lists everything that schedlab reads, as one table; a new reader needs one more row.

A row says how to make a folder with such a file, how to change the file, and what reads it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import monitor_readers
import mutators
from kept_runs import keep_simulated
from mutators import Mutator
from schedlab import metrics, trace
from schedlab.analysis.agreement import known
from schedlab.analysis.comparison.compare import compare
from schedlab.base.files.archive import write_archive
from schedlab.base.toolchain.policies import Catalogue
from schedlab.commands.metric_tables import tables
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.metrics.model import TABLES, TABLES_FILE
from schedlab.monitor.model import Model
from schedlab.monitor.systems.recorded import _PlayableTrace, recorded_setup
from schedlab.monitor.trace_file import RecentRecords, TraceFile
from schedlab.paths import ROOT
from schedlab.recordings.convert import convert
from schedlab.report import artifact, artifact_check
from schedlab.runs import collection, results
from schedlab.runs.recording import read_recording
from schedlab.runs.replay import derive_workload, parse_charges
from schedlab.runs.results import EVALUATIONS_FILE, read_sequential_checks, write_sequential_checks
from schedlab.runs.worker import Result
from schedlab.studies import figures
from schedlab.sweep import dataset, description_reader, ranking
from schedlab.sweep.expansion import count_runs_max, expand
from schedlab.sweep.objectives import parse_objective
from schedlab.sweep.rows import RunRows
from schedlab.workload import costs, workload_files
from schedlab.workload.shapes import reading as shapes
from schedlab.workload.text import format_workload

Read = Callable[[Path, Path], object]
"""Reads a file; takes the folder and the file."""


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file."""

    name: str
    file: str
    """The file's path in the folder."""
    make: Callable[[Path], object]
    """Fills a folder."""
    read: Read
    mutators: tuple[Mutator, ...]
    tool: str = ""
    """Program that the reader requires."""


# --- runs


def _runs(folder: Path) -> None:
    for side, seed in (("before", 1), ("before", 2), ("after", 1), ("after", 2)):
        keep_simulated(
            folder / side / f"run{seed}", seed, policy="rr" if side == "before" else "mlfq"
        )


def _runs_of_older_versions(folder: Path) -> None:
    """Their tables are Parquet files, as large tables still are."""
    _runs(folder)
    for tables_file in folder.glob(f"*/*/{results.METRICS_FOLDER}/{TABLES_FILE}"):
        run_metrics = metrics.load(tables_file.parent)
        tables_file.unlink()
        for table in TABLES:
            getattr(run_metrics, table).write_parquet(tables_file.parent / f"{table}.parquet")


def _read_runs(folder: Path, file: Path) -> None:
    before, after = (collection.read_collection([folder / side]) for side in ("before", "after"))
    for table in (before.summary, before.groups, before.processes, before.values):
        table.to_dicts()
    for run in before:
        run_metrics = run.metrics()
        json.dumps(run_metrics.to_dict())
        tables([(run.setup.policy_title, run_metrics)])
    json.dumps(compare(before, after).to_dict())
    if file.name == results.MANIFEST_FILE:
        recorded_setup(file.parent)
        read_recording(file.parent).replayed  # noqa: B018


def _looked(folder: Path) -> None:
    _runs(folder)
    write_sequential_checks(folder / "before", 4)


def _read_trace(folder: Path, file: Path) -> None:
    read = trace.read(file)
    for form in trace.FORMATS:
        trace.export(read, folder / "exported", form)
    _play(file)
    read_recording(file)
    derive_workload(read, parse_charges("kernel", "rr"), keep_switches=True)
    trace.validate(read)
    metrics.compute(read)


def _play(file: Path) -> None:
    """Replays a trace as the monitor shows it."""
    tape = _PlayableTrace(file)
    model = Model(tape.header, "rr", "equal")
    records = tape.records_until(0, tape.end_ns)
    model.feed(records)
    model.reach(tape.end_ns)
    model.frame()
    with TraceFile(file.with_name("again.bin"), tape.header) as again:
        again.add(records)
    recent = RecentRecords(tape.header, records_max=50)
    for begin in range(0, len(records), 20):
        recent.add(records[begin : begin + 20])
    recent.write(file.with_name("recent.bin"), frozenset({1}), span_ns=1_000_000)


# --- sweeps


def _swept(folder: Path) -> None:
    make = {"measuring": {"schedlab": "1"}, "machines": {"sim": {"machine_version": "1"}}}
    with dataset.open_data_set(folder, ("set_slice",), make, "a title") as sweep_dataset:
        for seed in (1, 2, 3):
            identity = {
                "workload": "w.json", "policy": "mlfq", "settings": "", "changes": "", "machine": "sim",
                "costs": "kernel", "cpus": 1, "tick_ns": 10**6, "limit_ns": 10**9, "seed": seed, "set_slice": 1,
            }  # fmt: skip
            summary = {
                "processes": 4,
                "finished": 4,
                "clock_step_ns": 1,
                "turnaround_mean_ns": 1e6 + seed,
            }
            rows = RunRows(summary, ({"group": "a", "processes": 2, "turnaround_mean_ns": 1e6},))
            other = {**identity, "settings": "slice=2", "set_slice": 2}
            sweep_dataset.add([(identity, Result(f"a{seed}", Outcome("success"), 0.1, rows)),
                       (other, Result(f"b{seed}", Outcome("success"), 0.1, rows))])  # fmt: skip


def _read_swept(folder: Path, _: Path) -> None:
    for table in (dataset.RUNS, dataset.GROUPS, dataset.REPORTED):
        dataset.read_table(folder, table).to_dicts()
    dataset.read_statuses(folder)
    for text in ("turnaround", "turnaround@a"):
        objective = parse_objective(text)
        for values in ranking.read_values(folder, [objective]):
            ranking.rank_setups(values, objective)
    manifest = dataset.read_manifest(folder)
    dataset.check_same_programs(folder, manifest, dict(manifest["make"]))


@cache
def _catalogue() -> Catalogue:
    from built_once import build_once
    from schedlab.base.toolchain.policies import read_catalogue

    build_once("host-tools")
    return read_catalogue()


_RUNS_MOST = 2000


def _read_sweep(_: Path, file: Path) -> None:
    described = description_reader.read_description(file, {}, _catalogue())
    if count_runs_max(described) <= _RUNS_MOST:
        expand(described)


# --- others


def _copy(source: str, name: str, folder: Path) -> None:
    (folder / name).write_bytes((ROOT / source).read_bytes())


_WORKLOAD = ROOT / "workloads/files/ladder.json"


def _sweep(folder: Path) -> None:
    (folder / "work.json").write_bytes(_WORKLOAD.read_bytes())
    (folder / "sweep.yaml").write_text(
        "description: some\nworkloads:\n- work.json\n- file: work.json\n  with: {tasks.one.instance: [1, 2]}\n"
        "policies:\n- rr\n- policy: mlfq\n  set: {boost: [0, 480], slice_1: 1..3}\n  where: [boost > 10]\n"
        "- policy: mlfq\n  set: {boost: 0..480}\n  sample: {method: sobol, count: 4, seed: 1}\n"
        "machines: [sim]\ncpus: 1-2\nseeds: [1, 2]\ntick: [1ms, 10ms]\ncosts: [kernel]\nlimit: 10s\n"
    )


def _read_workload(_: Path, file: Path) -> None:
    workload = workload_files.read_workload_file(file)
    if workload.total() < _RUNS_MOST:
        format_workload(workload, 1, 1_000_000)


_LTTNG = """\
[11:59:59.999000000] host sched_switch: { cpu_id = 1 }, { prev_comm = "a", prev_tid = 5, prev_prio = 20, \
prev_state = ( "S" : container = 1 ), next_comm = "b", next_tid = 6, next_prio = 25 }
[12:00:00.000000000] host sched_waking: { cpu_id = 1 }, { comm = "a", tid = 5, prio = 20, target_cpu = 1 }
[12:00:00.001000000] host sched_switch: { cpu_id = 1 }, { prev_comm = "b", prev_tid = 6, prev_prio = 25, \
prev_state = 1, next_comm = "a", next_tid = 5, next_prio = 20 }
"""
_PERF = """\
            pong-349     [001] d..2.    28.856154: sched_switch: prev_comm=pong prev_pid=349 \
prev_prio=120 prev_state=S ==> next_comm=ping next_pid=348 next_prio=120
            ping-348     [001] d..3.    28.856159: sched_waking: comm=pong pid=349 prio=120 target_cpu=001
            ping-348     [001] d..2.    28.856161: sched_switch: prev_comm=ping prev_pid=348 \
prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.    28.856171: sched_wakeup: pong:349 [120] success=1 CPU:000
          <idle>-0       [000] d..2.    28.856180: sched_migrate_task: comm=pong pid=349 prio=120 orig_cpu=1 dest_cpu=0
          <idle>-0       [000] d..2.    28.856191: sched_switch: swapper/0:0 [120] R ==> pong:349 [120]
            pong-349     [000] d..2.    28.856195: sched_process_fork: comm=pong pid=349 child_comm=pong child_pid=350
            pong-349     [000] d..2.    28.856199: sched_switch: pong:349 [120] X ==> swapper/0:0 [120]
"""


def _perf(folder: Path) -> None:
    (folder / "perf.txt").write_text(_PERF)


def _perf_gz(folder: Path) -> None:
    (folder / "perf.txt.gz").write_bytes(gzip.compress(_PERF.encode(), mtime=0))


def _perf_tar(folder: Path) -> None:
    with tarfile.open(folder / "perf.tar", "w") as members:
        member = tarfile.TarInfo("perf.txt")
        member.size = len(_PERF.encode())
        members.addfile(member, io.BytesIO(_PERF.encode()))


def _lttng(folder: Path) -> None:
    (folder / "lttng.txt").write_text(_LTTNG)


def _read_perf(folder: Path, file: Path) -> None:
    path = folder / "imported"
    convert(file, path, "eevdf", 4_000_000)


def _perfetto(folder: Path) -> None:
    """Exports a simulated trace to Perfetto's format."""
    keep_simulated(folder / "run", 1)
    trace.export(trace.read(folder / "run" / TRACE_FILE), folder / "x.perfetto-trace", "perfetto")


def _recorded(name: str, folder: Path) -> None:
    packed = (ROOT / "tests" / "recordings" / f"{name}.xz").read_bytes()
    (folder / name).write_bytes(lzma.decompress(packed))


def _recording(name: str, tool: str) -> Reader:
    """Unpacks a recording in the tool's format."""
    return Reader(
        tool, name, partial(_recorded, name), _read_perf, (*_BYTES, mutators.of_words), tool
    )


# --- artifacts of reports


def _artifact(folder: Path) -> None:
    """Packs an artifact with one figure and one run, and writes its description next to it."""
    keep_simulated(folder / "run", 1)
    data = b"policy,value\nrr,1\n"
    figure = {"name": "f", "label": "Figure 1", "title": "F", "page": "p"}
    listing = {
        "format": artifact.ARTIFACT_FORMAT,
        "figures": [{**figure, "sha256": hashlib.sha256(data).hexdigest()}],
        "runs": [{"folder": "runs/1", "repeated": True, "trace_sha256": None}],
    }
    (folder / artifact.LISTING_FILE).write_text(json.dumps(listing))
    (folder / "f.csv").write_bytes(data)
    _pack(folder, folder / artifact.LISTING_FILE)


def _pack(folder: Path, listing: Path) -> None:
    files = {
        artifact.LISTING_FILE: listing,
        f"{artifact.FIGURES_FOLDER}/f.csv": folder / "f.csv",
        f"runs/1/{results.MANIFEST_FILE}": folder / "run" / results.MANIFEST_FILE,
    }
    write_archive(folder / "a.zip", files)


def _read_artifact(folder: Path, file: Path) -> None:
    if file.name == artifact.LISTING_FILE:
        _pack(folder, file)
    with artifact_check.unpacked_artifact(folder / "a.zip") as opened_artifact:
        json.dumps([vars(figure) for figure in opened_artifact.figures])
        json.dumps([str(trace_path) for trace_path in opened_artifact.traces])


_JSON = (mutators.of_bytes, mutators.of_json, mutators.of_json, mutators.of_json)
_BYTES = (mutators.of_bytes,)
_TRACE = (mutators.of_bytes, mutators.of_trace, mutators.of_trace)
_PARQUET = (mutators.of_bytes, mutators.of_parquet, mutators.of_parquet)
_RUN = "before/run1"


def _metrics(table: str) -> Reader:
    return Reader(
        f"metrics-{table}",
        f"{_RUN}/metrics/{table}.parquet",
        _runs_of_older_versions,
        _read_runs,
        _PARQUET,
    )


def _set(table: str) -> Reader:
    return Reader(f"sweep-{table}", f"{table}/part-000001.parquet", _swept, _read_swept, _PARQUET)


READERS = (
    Reader("manifest", f"{_RUN}/{results.MANIFEST_FILE}", _runs, _read_runs, _JSON),
    Reader("looks", f"before/{EVALUATIONS_FILE}", _looked, lambda _, file: read_sequential_checks(file.parent), _JSON),
    Reader("metrics", f"{_RUN}/metrics/{TABLES_FILE}", _runs, _read_runs, _JSON),
    *map(_metrics, ("summary", "groups", "processes", "cpus", "values")),
    Reader("trace", f"{_RUN}/{TRACE_FILE}", _runs, _read_trace, _TRACE),
    Reader("artifact", "a.zip", _artifact, _read_artifact, _BYTES),
    Reader("artifact-listing", artifact.LISTING_FILE, _artifact, _read_artifact, _JSON),
    Reader("sweep-manifest", dataset.MANIFEST, _swept, _read_swept, _JSON),
    *map(_set, (dataset.RUNS, dataset.GROUPS)),
    Reader("sweep", "sweep.yaml", _sweep, _read_sweep, (mutators.of_bytes, mutators.of_yaml, mutators.of_yaml)),
    Reader("workload", "work.json", _sweep, _read_workload, _JSON),
    Reader("costs", "costs.json", partial(_copy, "sim/costs/kernel.json", "costs.json"),
           lambda _, file: costs.read_profile(file).text(), _JSON),
    Reader("shape", "shape.json", partial(_copy, "shapes/fast-and-slow.json", "shape.json"),
           lambda _, file: shapes.read_shape(file).text(), _JSON),
    Reader("perf-text", "perf.txt", _perf, _read_perf, _BYTES),
    Reader("perf-gz", "perf.txt.gz", _perf_gz, _read_perf, _BYTES),
    Reader("perf-tar", "perf.tar", _perf_tar, _read_perf, _BYTES),
    Reader("babeltrace", "lttng.txt", _lttng, _read_perf, _BYTES),
    Reader("perfetto", "x.perfetto-trace", _perfetto, _read_perf, _BYTES),
    _recording("few.data", "perf"),
    _recording("sched.dat", "trace-cmd"),
    Reader("messages", "messages", monitor_readers.lines, monitor_readers.ask,
           (mutators.of_bytes, mutators.of_json_lines, mutators.of_json_lines)),
    Reader("connection", "connection", monitor_readers.connection, monitor_readers.connect, _BYTES),
    Reader("known", "known.csv", partial(_copy, "python/schedlab/analysis/agreement/known.csv", "known.csv"),
           lambda _, file: known.read_known_differences(file), _BYTES),
    Reader("published", "published.csv", partial(_copy, "studies/4/published.csv", "published.csv"),
           lambda _, file: figures.read(file, 4), _BYTES),
)  # fmt: skip
