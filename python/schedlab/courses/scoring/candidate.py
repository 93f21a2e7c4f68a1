# SPDX-License-Identifier: MIT
"""Scores policies written by programs: returns a reproducible verdict for a source.

The source is untrusted: it is compiled in a sandbox and runs in a WebAssembly machine
(schedlab.courses.submissions). Any failure becomes a reason in the verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from schedlab import metrics
from schedlab.base.files.atomic import atomic_write
from schedlab.base.files.reading import read_bytes
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.courses.grading.graded_run import GradedRun
from schedlab.courses.grading.judging import judge_expectation
from schedlab.courses.grading.lab import LabTest, read_tests
from schedlab.courses.scoring import score_card
from schedlab.courses.scoring.measuring import values_file
from schedlab.courses.scoring.workload_sets import SHOWN_KEY, read_set
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import CompiledPolicy, CompileError, compile_policy
from schedlab.courses.submissions.sandbox import need_sandbox
from schedlab.courses.submissions.trial import PolicyForm, Trial
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spec import RunSpec
from schedlab.metrics import Metrics
from schedlab.paths import ROOT
from schedlab.runs.collection import Collection, StoredRun, identity

LEVEL = "quick"
CANDIDATE = "candidate"
"""Name of the scored policy among others, because its source may use any name."""
INSTRUCTIONS_MAX = 10_000_000_000
"""Limit on the WebAssembly instructions of a candidate's hooks in all runs: 76 times round-robin's.

The built-in policy with the most, `stride`, executes 6,250 million.
"""
_REQUIRED_TESTS_FILE = Path(__file__).with_name("laws.json")
_NAME_PATTERN = re.compile(r"POLICY_DEFINITION\s[^;]*?\.name\s*=\s*\"([a-z][a-z0-9_-]{0,23})\"")

Verdict = dict[str, Any]


@dataclass(frozen=True)
class CandidateFailure(Exception):
    """The candidate has no score."""

    step: str
    """The failed step: `compile`, `laws` or `simulator`."""
    why: str


def score(source: str | Path, *, key: bytes | None = None, trusted: bool = False) -> Verdict:
    """Scores a policy at the level `quick` (docs/score.md); returns a dictionary for JSON.

    `source` is the text of a policy or the path of its file. `key` draws hidden variants of the
    workloads. `trusted` compiles the policy outside of the sandbox.

    On success `failure` is "" and `score` is a number, 1 for the set's reference. Otherwise
    `failure` is the reason and `failed_at` is the step: `compile`, `laws` or `simulator`. Raises
    MachineUnfit if this host cannot run the sandbox, and WrongUsage if the file does not exist.
    """
    if not trusted:
        need_sandbox()
    wasm_policy.need_library()
    workload_set = read_set()
    verdict: Verdict = {
        "set": workload_set.name,
        "set_sha256": workload_set.sha256,
        "key_sha256": key and hashlib.sha256(key).hexdigest(),
        "level": LEVEL,
        "failed_at": "",
    }
    text = _source_text(source)
    verdict["source_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    level = workload_set.levels[LEVEL]
    try:
        policy = compile_candidate(text, trusted)
        check_required_tests(policy)
        candidate_values = _measure_values(key or SHOWN_KEY, policy)
    except CandidateFailure as failure:
        verdict["failed_at"] = failure.step
        return verdict | score_card.ScoreCard(CANDIDATE, failure.why, (), (), ()).to_dict()
    reference = str(workload_set.reference)
    values = {reference: _reference_values(key or SHOWN_KEY, trusted), CANDIDATE: candidate_values}
    return (
        verdict
        | score_card.make_card(
            workload_set, level, score_card.MeasuredPolicies(values, {}), CANDIDATE
        ).to_dict()
    )


def score_many(
    sources: Iterable[str | Path],
    executor: Executor,
    *,
    key: bytes | None = None,
    trusted: bool = False,
) -> Iterator[Verdict]:
    """Yields the verdicts of many sources in order, each once the previous ones are ready.

    `executor` runs the work: `schedlab.base.host.workers.worker_pool` or
    `schedlab.runs.cluster.executor`.
    """
    futures = [executor.submit(score, source, key=key, trusted=trusted) for source in sources]
    for future in futures:
        yield future.result()


def _source_text(source: str | Path) -> str:
    """Returns the text of a policy, or of the file at this path. Raises WrongUsage."""
    if isinstance(source, str) and ("\n" in source or not source.endswith(".c")):
        return source
    return read_bytes(Path(source)).decode(errors="replace")


def compile_candidate(text: str, trusted: bool) -> CompiledPolicy:
    """Compiles a candidate. Raises CandidateFailure."""
    match = _NAME_PATTERN.search(text)
    if not match:
        raise CandidateFailure(
            "compile",
            'it defines no policy: it is to end with POLICY_DEFINITION policy_NAME = {.name = "NAME", …}, whose name'
            " begins with a-z and has at most 24 of a-z, 0-9, - and _",
        )
    headers = tuple(sorted(header.name for header in (ROOT / "policies").glob("*.h")))
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / f"{CANDIDATE}.c"
        path.write_text(text, errors="replace")
        try:
            return compile_policy(PolicyForm(match[1], headers), path, trusted)
        except CompileError as error:
            raise CandidateFailure("compile", str(error)) from None


@cache
def _required_tests() -> tuple[LabTest, ...]:
    """Returns the tests that every policy must pass."""
    return read_tests(_REQUIRED_TESTS_FILE)


def check_required_tests(policy: CompiledPolicy) -> None:
    """Runs the tests that every policy must pass before it is scored. Raises CandidateFailure."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / TRACE_FILE
        for test in _required_tests():
            try:
                wasm_policy.run(test, policy, path)
            except wasm_policy.PolicyBroken as error:
                raise CandidateFailure("laws", f"{test.name}: {error}") from None
            graded_run = GradedRun(path)
            for expected in test.expectations:
                if why := judge_expectation(test, expected, graded_run, graded_run).why:
                    raise CandidateFailure("laws", f"{test.name}: {expected.title}: {why}")


@cache
def _set_trials(key: bytes) -> tuple[tuple[RunSpec, Trial], ...]:
    """Returns all runs of the set, drawn once per process because they are the same for all candidates."""
    workload_set = read_set()
    runs = workload_set.runs(key, workload_set.levels[LEVEL], PolicyChoice(CANDIDATE))
    return tuple((run, _sandbox_trial(run)) for run in runs)


def _sandbox_trial(run: RunSpec) -> Trial:
    assert run.file
    return Trial(
        run.label, run.file, run.cpus, run.seed, run.tick_ns, run.limit_ns, run.costs.name, {}
    )


def _measure_values(key: bytes, policy: CompiledPolicy) -> score_card.Values:
    """Returns a policy's values in all runs. Raises CandidateFailure."""
    measured_runs: list[tuple[RunSpec, Metrics]] = []
    instructions = 0
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        path = Path(folder) / TRACE_FILE
        for run, trial in _set_trials(key):
            configuration = f"{run.label}, {run.cpus} CPUs"
            try:
                instructions += wasm_policy.run(trial, policy, path).instructions
            except wasm_policy.PolicyBroken as error:
                raise CandidateFailure("simulator", f"{configuration}: {error}") from None
            if instructions > INSTRUCTIONS_MAX:
                raise CandidateFailure(
                    "simulator",
                    f"up to {configuration}, its hooks have executed more than {INSTRUCTIONS_MAX:,} instructions",
                )
            measured_runs.append((run, metrics.measure(path)))
    workload_set = read_set()
    values = score_card.read_values(
        workload_set, workload_set.levels[LEVEL], _MeasuredRuns(measured_runs)
    )
    return values.values[CANDIDATE]


def _reference_values(key: bytes, trusted: bool) -> score_card.Values:
    """Returns the values of the set's reference, run like a candidate and cached."""
    workload_set = read_set()
    level, reference = workload_set.levels[LEVEL], workload_set.reference
    cache_file = values_file(workload_set, key, level, reference, ".json")
    if not cache_file.is_file():
        source = ROOT / "policies" / f"{reference.name}.c"
        values = _measure_values(key, compile_candidate(source.read_text(), trusted))
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(cache_file) as new_file:
            new_file.write_text(
                json.dumps({name: policy_values.tolist() for name, policy_values in values.items()})
            )
    stored = json.loads(cache_file.read_text())
    return {name: np.array(policy_values) for name, policy_values in stored.items()}


class _MeasuredRuns(Collection):
    """Measured runs without files."""

    def __init__(self, measured_runs: Sequence[tuple[RunSpec, Metrics]]) -> None:
        """Holds these runs and their metrics."""
        super().__init__(_stored_run(run) for run, _ in measured_runs)
        self._metrics = [metrics for _, metrics in measured_runs]

    def _frame(self, table: str) -> pl.DataFrame:
        frames: list[pl.DataFrame] = [
            getattr(metrics, table).with_columns(
                run=pl.lit(number, pl.Int64),
                **{name: pl.lit(value) for name, value in identity(run).items()},
            )
            for number, (run, metrics) in enumerate(zip(self.runs, self._metrics, strict=True))
        ]
        return pl.concat(frames, how="diagonal_relaxed")


def _stored_run(run: RunSpec) -> StoredRun:
    """Returns a run in the form of a stored run, without a folder."""
    manifest = {
        "label": run.label,
        "policy": str(run.policy),
        "tunables": {},
        "cpus": run.cpus,
        "tick_ns": run.tick_ns,
        "machine": run.machine.name,
        "seed": run.seed,
        "status": "success",
    }
    return StoredRun(Path(), manifest)
