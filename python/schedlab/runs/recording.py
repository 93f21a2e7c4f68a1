# SPDX-License-Identifier: MIT
"""Describes a recorded run for a replay in the simulator: its trace and its configuration."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.policies import STANDARD, PolicyChoice, parse_choices
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spec import Replay
from schedlab.runs import results
from schedlab.workload import costs
from schedlab.workload.costs import KERNEL, Costs
from schedlab.workload.delays import delayed_costs, delays_of
from schedlab.workload.model import STANDARD_LIMIT_NS

if TYPE_CHECKING:
    from schedlab.runs.replay import ReplayChanges, Replayed
    from schedlab.trace import Trace

STANDARD_TICK_NS = 1_000_000
"""The tick length (ns) for a recording whose machine has no ticks."""
_PROCESSES = (4096, 2**24)


@dataclass(frozen=True)
class Recording:
    """A recorded run: its trace and its configuration."""

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
    """The machine's costs if they are known; otherwise those of the schedlab kernel on Spike."""
    keep_switches: bool = False
    """True if the replay repeats changes of policies and tunables that happened during the recording."""
    replay_changes: ReplayChanges | None = None
    """Changed properties or behaviour of processes."""
    changes: str = ""
    """`replay_changes` as text."""
    of: str = ""
    """The hash of the set of recordings with different seeds; "" for a single recording."""

    @property
    def sha256(self) -> str:
        """Hash that identifies the workload. All recordings of a set have the same hash."""
        return self.of or self.trace_sha256

    @property
    def title(self) -> str:
        """The title in a replay's manifest and tables."""
        how = f"{self._policy_title} on {self.cpus} CPU{'s' if self.cpus > 1 else ''}"
        changes = f", {self.changes}" if self.changes else ""
        seed = "" if self.of else f", seed {self.seed}"
        return f"replay of {self.workload} ({self.machine}, {how}{seed}{changes})"

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
        """The workload derived from the trace. Raises TraceError if the file is not a trace."""
        from schedlab import trace
        from schedlab.runs.replay import AS_RECORDED, charges_of, workload_of

        paid = charges_of(self.costs.text, str(self.policy))
        change = self.replay_changes or AS_RECORDED
        return workload_of(trace.read(self.path), paid, self.keep_switches, change)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about what is not replayed."""
        return self.replayed.notes

    @cached_property
    def replay(self) -> Replay:
        """The input of the simulator."""
        least, most = _PROCESSES
        processes = min(max(least, self.replayed.processes), most)
        return Replay(self.sha256, self.facts, self.replayed.text, processes)

    def but(self, change: ReplayChanges, changes: str) -> Recording:
        """Returns the recording with changed properties or behaviour of processes.

        `changes` describes the change.
        """
        return replace(self, replay_changes=change, changes=changes)

    def with_switches(self) -> Recording:
        """Returns the recording with changes of the policy included."""
        return replace(self, keep_switches=True)


def recordings(place: Path) -> tuple[Recording, ...]:
    """Returns all recordings of a folder of runs, sorted by seed, or the single one at a path (see `recording`).

    Raises WrongUsage if the recordings differ in more than their seeds.
    """
    folders = [] if place.is_file() else results.runs_in(place)
    if len(folders) < 2:
        return (recording(place),)
    all_recordings = [recording(folder) for folder in folders]
    first = all_recordings[0]
    for recorded in all_recordings:
        for what in _OF_A_SETUP:
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
    together = hashlib.sha256(
        " ".join(recorded.trace_sha256 for recorded in all_recordings).encode()
    ).hexdigest()
    return tuple(
        sorted(
            (replace(recorded, of=together) for recorded in all_recordings),
            key=lambda recorded: recorded.seed,
        )
    )


_OF_A_SETUP = ("workload", "machine", "policy", "settings", "cpus", "tick_ns", "costs")


def recording(place: Path) -> Recording:
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
    if not len(trace.timeline(events).pid):
        raise WrongUsage(
            f"{path}: no process does anything in it, so there is nothing to replay; "
            "name another trace"
        )
    manifest: Mapping[str, Any] = results.read_manifest(folder) if folder else {}
    policy, settings = _policy(events, manifest)
    return Recording(
        path=path,
        trace_sha256=file_hash(path),
        workload=str(manifest.get("label") or manifest.get("workload") or path.name),
        machine=str(manifest.get("machine", "unknown machine")),
        policy=policy,
        settings=settings,
        cpus=events.header.cpus,
        seed=int(manifest.get("seed", events.header.seed)),
        tick_ns=events.header.tick_ns or STANDARD_TICK_NS,
        limit_ns=int(manifest.get("limit_ns", STANDARD_LIMIT_NS)),
        costs=_costs(manifest),
    )


def _policy(
    events: Trace, manifest: Mapping[str, Any]
) -> tuple[PolicyChoice, tuple[tuple[str, int], ...]]:
    """Returns the initial policy and its tunables.

    If the trace does not name the policy, returns the default policy.
    """
    from schedlab.trace import Kind

    if "policy" in manifest:
        at_first = results.began_under(manifest)
        return _choice(at_first[0]), tuple(at_first[1].items())
    forks = events.rows(Kind.FORK)
    began = int(forks[0]) if len(forks) else len(events.events)
    texts = dict(zip(events.texts["row"].to_list(), events.texts["text"].to_list(), strict=True))
    policies = [row for row in events.rows(Kind.POLICY).tolist() if row < began]
    tunables = [row for row in events.rows(Kind.TUNABLE).tolist() if row < began]
    values = events.column("second").view("int64")
    policy = _choice(texts[policies[-1]]) if policies else PolicyChoice(STANDARD)
    return policy, tuple((texts[row], int(values[row])) for row in tunables)


def _choice(name: str) -> PolicyChoice:
    try:
        return parse_choices(name)[0]
    except ValueError:
        return PolicyChoice(STANDARD)  # from a kernel with other policies


def _costs(manifest: Mapping[str, Any]) -> Costs:
    """Returns the recorded simulator's costs. For a kernel, returns the costs measured on the schedlab kernel."""
    if manifest.get("machine") != SIMULATOR:
        return _of_kernel(manifest.get("delays") or "")
    try:
        words = shlex.split(manifest.get("boot_arguments", ""))
    except ValueError:  # an unclosed quote: the arguments are unknown
        return KERNEL
    if "--costs" not in words[:-1]:
        return KERNEL
    text = words[words.index("--costs") + 1]
    return (
        Costs(manifest.get("costs", text), text)
        if text not in costs.BUILT_IN
        else Costs(text, text)
    )


def _of_kernel(delays: str) -> Costs:
    """Returns the costs of the schedlab kernel, plus the delays that the run adds to operations."""
    if not delays:
        return KERNEL
    return Costs(f"kernel, delayed: {delays}", delayed_costs(KERNEL.text, delays_of(delays)))
