# SPDX-License-Identifier: MIT
"""Describes a stored run as input for a replay in the simulator."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.policies import DEFAULT_POLICY, PolicyChoice, parse_choices
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spec import Replay
from schedlab.runs import results
from schedlab.workload import costs
from schedlab.workload.costs import KERNEL_COSTS, Costs
from schedlab.workload.delays import delayed_costs, parse_delays
from schedlab.workload.model import DEFAULT_LIMIT_NS

if TYPE_CHECKING:
    from schedlab.runs.replay import ReplayChanges, Replayed
    from schedlab.trace import Trace

DEFAULT_TICK_NS = 1_000_000
"""The tick length (ns) for a recording whose machine has no ticks."""
_PROCESS_SLOTS = (4096, 2**24)


@dataclass(frozen=True)
class Recording:
    """A stored run to be replayed: its trace and its configuration."""

    path: Path
    """The path of the trace."""
    trace_sha256: str
    workload: str
    """The recorded workload, as text."""
    machine: str
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...]
    cpus: int
    seed: int
    tick_ns: int
    limit_ns: int
    costs: Costs
    """Costs that the recorded machine charged; if unknown, those of the schedlab kernel on Spike."""
    keep_switches: bool = False
    """True if the replay repeats the recorded changes of policy and tunables."""
    replay_changes: ReplayChanges | None = None
    """How the processes of the replay differ from the recorded ones."""
    changes: str = ""
    """`replay_changes` as text."""
    of: str = ""
    """Hash of a set of recordings that differ in their seeds; "" for a single recording."""

    @property
    def sha256(self) -> str:
        """Hash of the replayed workload; all recordings of a set have the same."""
        return self.of or self.trace_sha256

    @property
    def title(self) -> str:
        """The title in a replay's manifest and tables."""
        conditions = f"{self._policy_title} on {self.cpus} CPU{'s' if self.cpus > 1 else ''}"
        changes = f", {self.changes}" if self.changes else ""
        seed = "" if self.of else f", seed {self.seed}"
        return f"replay of {self.workload} ({self.machine}, {conditions}{seed}{changes})"

    @property
    def _policy_title(self) -> str:
        settings = ",".join(f"{name}={value}" for name, value in self.settings)
        return f"{self.policy} {settings}" if settings else str(self.policy)

    @property
    def facts(self) -> dict[str, Any]:
        """Entries for a replay's manifest."""
        return {
            "trace_sha256": self.trace_sha256,
            "workload": self.workload,
            "machine": self.machine,
            "policy": str(self.policy),
            "tunables": dict(self.settings),
            "cpus": self.cpus,
            "seed": self.seed,
            "tick_ns": self.tick_ns,
            "costs": self.costs.name,
            "switches": "kept" if self.keep_switches else "left out",
            **({"otherwise": self.changes} if self.changes else {}),
        }

    @cached_property
    def replayed(self) -> Replayed:
        """The workload that reproduces the recorded demand, in the simulator's text format.

        Raises TraceError if the file is not a trace.
        """
        from schedlab import trace
        from schedlab.runs.replay import AS_RECORDED, derive_workload, parse_charges

        paid = parse_charges(self.costs.text, str(self.policy))
        change = self.replay_changes or AS_RECORDED
        return derive_workload(trace.read(self.path), paid, self.keep_switches, change)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about recorded behaviour that the replay omits."""
        return self.replayed.notes

    @cached_property
    def replay(self) -> Replay:
        """The input of the simulator."""
        least, most = _PROCESS_SLOTS
        processes = min(max(least, self.replayed.processes), most)
        return Replay(self.sha256, self.facts, self.replayed.text, processes)

    def with_changes(self, change: ReplayChanges, changes: str) -> Recording:
        """Returns this recording with changed processes in its replay.

        `changes` describes the changes as text.
        """
        return replace(self, replay_changes=change, changes=changes)

    def with_switches(self) -> Recording:
        """Returns this recording with its changes of policy and tunables included in the replay."""
        return replace(self, keep_switches=True)


def read_recordings(place: Path) -> tuple[Recording, ...]:
    """Returns the recordings in a folder of runs, sorted by seed, or the single one at a path.

    Raises WrongUsage if the recordings differ in more than their seeds.
    """
    folders = [] if place.is_file() else results.list_runs(place)
    if len(folders) < 2:
        return (read_recording(place),)
    all_recordings = [read_recording(folder) for folder in folders]
    first = all_recordings[0]
    for recorded in all_recordings:
        for what in _COMMON_FIELDS:
            one, other = getattr(first, what), getattr(recorded, what)
            if one != other:
                raise WrongUsage(
                    f"{place}: its runs differ in more than their seeds: "
                    f"{first.path.parent.name} has {what.replace('_', ' ')} {one}, "
                    f"{recorded.path.parent.name} has {other}; name one of them"
                )
    seeds = {recorded.seed for recorded in all_recordings}
    if len(seeds) < len(all_recordings):  # machines without seeds: number the recordings
        all_recordings = [
            replace(recorded, seed=number) for number, recorded in enumerate(all_recordings)
        ]
    set_hash = hashlib.sha256(
        " ".join(recorded.trace_sha256 for recorded in all_recordings).encode()
    ).hexdigest()
    return tuple(
        sorted(
            (replace(recorded, of=set_hash) for recorded in all_recordings),
            key=lambda recorded: recorded.seed,
        )
    )


_COMMON_FIELDS = ("workload", "machine", "policy", "settings", "cpus", "tick_ns", "costs")


def read_recording(place: Path) -> Recording:
    """Returns the recording of a run's folder, of a folder that contains one run, or of a trace file.

    Raises WrongUsage if there is none.
    """
    from schedlab import trace

    folder = None if place.is_file() else results.find_run(place)
    path = folder / TRACE_FILE if folder else place
    try:
        events = trace.read(path)
    except trace.TraceError as error:
        raise WrongUsage(str(error)) from None
    if not len(trace.sort_steps(events).pid):
        raise WrongUsage(
            f"{path}: no process does anything in it, so there is nothing to replay; "
            "name another trace"
        )
    manifest: Mapping[str, Any] = results.read_manifest(folder) if folder else {}
    policy, settings = _initial_policy(events, manifest)
    return Recording(
        path=path,
        trace_sha256=file_hash(path),
        workload=str(manifest.get("label") or manifest.get("workload") or path.name),
        machine=str(manifest.get("machine", "unknown machine")),
        policy=policy,
        settings=settings,
        cpus=events.header.cpus,
        seed=int(manifest.get("seed", events.header.seed)),
        tick_ns=events.header.tick_ns or DEFAULT_TICK_NS,
        limit_ns=int(manifest.get("limit_ns", DEFAULT_LIMIT_NS)),
        costs=_recorded_costs(manifest),
    )


def _initial_policy(
    events: Trace, manifest: Mapping[str, Any]
) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
    """Returns the policy and tunables at the beginning of a trace.

    If the trace does not name the policy, returns the default policy.
    """
    from schedlab.trace import Kind

    if "policy" in manifest:
        initial = results.initial_policy(manifest)
        return _parse_policy(initial[0]), tuple(initial[1].items())
    forks = events.rows(Kind.FORK)
    began = int(forks[0]) if len(forks) else len(events.events)
    texts = dict(zip(events.texts["row"].to_list(), events.texts["text"].to_list(), strict=True))
    policies = [row for row in events.rows(Kind.POLICY).tolist() if row < began]
    tunables = [row for row in events.rows(Kind.TUNABLE).tolist() if row < began]
    values = events.column("second").view("int64")
    policy = _parse_policy(texts[policies[-1]]) if policies else PolicyChoice(DEFAULT_POLICY)
    return policy, tuple((texts[row], int(values[row])) for row in tunables)


def _parse_policy(name: str) -> PolicyChoice:
    try:
        return parse_choices(name)[0]
    except ValueError:
        return PolicyChoice(
            DEFAULT_POLICY
        )  # the recorded kernel had a policy that schedlab does not have


def _recorded_costs(manifest: Mapping[str, Any]) -> Costs:
    """Returns the costs that a recorded simulator charged; for other machines, those of the
    schedlab kernel.
    """
    if manifest.get("machine") != SIMULATOR:
        return _kernel_costs(manifest.get("delays") or "")
    try:
        words = shlex.split(manifest.get("boot_arguments", ""))
    except ValueError:  # the arguments have an unclosed quote, so they cannot be parsed
        return KERNEL_COSTS
    if "--costs" not in words[:-1]:
        return KERNEL_COSTS
    text = words[words.index("--costs") + 1]
    return (
        Costs(manifest.get("costs", text), text)
        if text not in costs.BUILT_IN_PROFILES
        else Costs(text, text)
    )


def _kernel_costs(delays: str) -> Costs:
    """Returns the costs of the schedlab kernel, plus the delays that the run added to operations."""
    if not delays:
        return KERNEL_COSTS
    return Costs(
        f"kernel, delayed: {delays}", delayed_costs(KERNEL_COSTS.text, parse_delays(delays))
    )
