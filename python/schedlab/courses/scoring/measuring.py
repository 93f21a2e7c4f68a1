# SPDX-License-Identifier: MIT
"""Measures policies on a set, and caches their values as baselines until a source changes."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from schedlab.analysis.gate.baseline import BASELINE_SUFFIX, unpacked_baseline, write_baseline
from schedlab.base.display.activity import working
from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.courses.scoring.score_card import MeasuredPolicies, read_values
from schedlab.courses.scoring.workload_sets import Level, WorkloadSet
from schedlab.machines.linux.machine import Linux
from schedlab.machines.published import is_published, object_sha256
from schedlab.machines.spec import RunSpec
from schedlab.paths import ROOT, cache_folder
from schedlab.runs.collection import Collection, StoredRun, read_collection

_SOURCE_PATHS = (
    *("Makefile", "abi", "kernel", "policies", "sim", "spike", "user"),
    *("python/schedlab/metrics", "python/schedlab/courses/submissions", "python/schedlab/workload"),
)
"""Sources that affect a policy's values."""
_LOADER_SOURCE_PATHS = ("python/schedlab/sched_ext",)
"""Additional sources for sched_ext schedulers."""
_LINUX_SOURCE_PATHS = ("linux", "python/schedlab/machines/linux")
"""Additional sources on Linux."""

RunExecutor = Callable[[Sequence[RunSpec], Path], Path]
"""Executes runs into a folder and returns it."""


def measure(
    workload_set: WorkloadSet,
    key: bytes,
    level: Level,
    policies: Sequence[PolicyChoice],
    scratch: Path,
    execute_runs: RunExecutor,
) -> MeasuredPolicies:
    """Returns the values of policies for a key, from the cache if possible."""
    file_by_policy = {
        policy: values_file(workload_set, key, level, policy, BASELINE_SUFFIX)
        for policy in policies
    }
    missing = [policy for policy, file in file_by_policy.items() if not file.is_file()]
    measured = MeasuredPolicies({}, {})
    if missing:
        runs = missing_runs(workload_set, key, level, missing)
        folder = scratch / hashlib.sha256(key).hexdigest()[:16]
        collection = read_collection([execute_runs(runs, folder)])
        with working("computing the objectives") as update:
            measured = read_values(workload_set, level, collection)
            by_policy: dict[str, list[StoredRun]] = {}
            for run in collection:
                by_policy.setdefault(run.setup.policy, []).append(run)
            for policy in missing:
                if str(policy) not in measured.failures:
                    update(f"keeping the runs of {policy}")
                    _cache_values(file_by_policy[policy], Collection(by_policy[str(policy)]))
    with working("") as update:
        for policy, file in file_by_policy.items():
            if policy not in missing:
                update(f"reading the earlier values of {policy}")
                with unpacked_baseline(file) as baseline:
                    values = read_values(workload_set, level, baseline.runs).values
                measured = MeasuredPolicies({**measured.values, **values}, measured.failures)
    return measured


def missing_runs(
    workload_set: WorkloadSet, key: bytes, level: Level, policies: Sequence[PolicyChoice]
) -> list[RunSpec]:
    """Returns the runs of policies that are not cached."""
    return [
        run
        for policy in policies
        if not values_file(workload_set, key, level, policy, BASELINE_SUFFIX).is_file()
        for run in workload_set.runs(key, level, policy)
    ]


def _cache_values(path: Path, runs: Collection) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_baseline(path, runs, {})


def values_file(
    workload_set: WorkloadSet, key: bytes, level: Level, policy: PolicyChoice, suffix: str
) -> Path:
    """Returns the path of a policy's cached values; its name is a hash of all inputs."""
    digest = hashlib.sha256()
    for part in (workload_set.sha256.encode(), key, level.name.encode(), str(policy).encode()):
        digest.update(part + b"\0")
    on_linux = level.machine == Linux.name
    if on_linux:
        digest.update(f"{level} {Linux().release().version}".encode())
    if is_published(policy):
        digest.update(object_sha256(policy).encode())
    paths = (
        *_SOURCE_PATHS,
        *(_LINUX_SOURCE_PATHS if on_linux else ()),
        *(_LOADER_SOURCE_PATHS if is_published(policy) else ()),
    )
    for file, file_digest in _source_hashes(paths).items():
        is_other_policy = file.parent.name == "policies" and file.suffix == ".c"
        if not is_other_policy or file.stem == policy.name:
            digest.update(f"{file} {file_digest}\n".encode())
    return cache_folder() / "score" / f"{digest.hexdigest()}{suffix}"


@cache
def _source_hashes(source_paths: tuple[str, ...]) -> dict[Path, str]:
    paths = [ROOT / part for part in source_paths]
    files = [
        file
        for place in paths
        for file in ([place] if place.is_file() else sorted(place.rglob("*")))
        if file.is_file() and file.suffix != ".pyc"
    ]
    return {file.relative_to(ROOT): file_hash(file) for file in files}
