# SPDX-License-Identifier: MIT
"""A recorded run that is to be replayed in the simulator: its trace, and what it was made with."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.base.files.whole import file_hash
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
    from schedlab.runs.replay import Otherwise, Replayed
    from schedlab.trace import Trace

STANDARD_TICK_NS = 1_000_000
"""The tick of a recording of a machine that has no ticks."""
_PROCESSES = (4096, 2**24)


@dataclass(frozen=True)
class Recording:
    """What is replayed, and how it was recorded."""

    path: Path
    """The path of its trace."""
    trace_sha256: str
    workload: str
    """What ran, in words."""
    machine: str
    policy: PolicyChoice
    settings: tuple[tuple[str, int], ...]
    cpus: int
    seed: int
    tick_ns: int
    limit_ns: int
    costs: Costs
    """The machine's costs, as far as they are known; those of our kernel on Spike if they are not.
    """
    keep_switches: bool = False
    """Policies and tunables that were switched while it ran are switched again."""
    otherwise: Otherwise | None = None
    """What processes do or have in another way."""
    changes: str = ""
    """The same, in words."""
    of: str = ""
    """The hash of a set of recordings that differ in their seeds, of which it is one; "": it is alone."""

    @property
    def sha256(self) -> str:
        """Tells a workload from others: that of a set is one."""
        return self.of or self.trace_sha256

    @property
    def title(self) -> str:
        """The title for a replay's manifest and tables."""
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
        """Facts for a replay's manifest."""
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
        """What its processes wanted. Raises TraceError if the file is no trace."""
        from schedlab import trace
        from schedlab.runs.replay import AS_RECORDED, charges, workload_of

        paid = charges(self.costs.text, str(self.policy))
        change = self.otherwise or AS_RECORDED
        return workload_of(trace.read(self.path), paid, self.keep_switches, change)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of it is not replayed."""
        return self.replayed.notes

    @cached_property
    def replay(self) -> Replay:
        """What the simulator replays."""
        least, most = _PROCESSES
        processes = min(max(least, self.replayed.processes), most)
        return Replay(self.sha256, self.facts, self.replayed.text, processes)

    def but(self, change: Otherwise, changes: str) -> Recording:
        """The same, where processes do or have something in another way, which `changes` says in words."""
        return replace(self, otherwise=change, changes=changes)

    def with_switches(self) -> Recording:
        """The same, where switches of the policy are replayed too."""
        return replace(self, keep_switches=True)


def recordings(place: Path) -> tuple[Recording, ...]:
    """Returns the recording that a place has (see `recording`); of a folder that holds several runs, all, in the order
    of their seeds. Raises WrongUsage if those do not differ in their seeds alone."""
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
                    f"{place} holds runs that differ in more than their seeds: {first.path.parent.name} has"
                    f" {what.replace('_', ' ')} {one}, {recorded.path.parent.name} has {other}; name one of them"
                )
    seeds = {recorded.seed for recorded in all_recordings}
    if len(seeds) < len(all_recordings):  # as of machines that have none: they are numbered
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
    """The recording in a run's folder, in a folder that holds one run, or a trace alone. Raises
    WrongUsage if it is none."""
    from schedlab import trace

    folder = None if place.is_file() else results.find_run(place)
    path = folder / TRACE_FILE if folder else place
    try:
        events = trace.read(path)
    except trace.TraceError as error:
        raise WrongUsage(str(error)) from None
    if not len(trace.timeline(events).pid):
        raise WrongUsage(f"{path}: no process does anything in it: there is nothing to replay")
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
    """Returns the policy that it began under, and its tunables; the standard policy if the trace does
    not say."""
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
        return PolicyChoice(STANDARD)  # of a kernel that has policies of its own


def _costs(manifest: Mapping[str, Any]) -> Costs:
    """The costs that the simulator was told; for a kernel, those that were measured on ours."""
    if manifest.get("machine") != SIMULATOR:
        return _of_kernel(manifest.get("delays") or "")
    try:
        words = shlex.split(manifest.get("boot_arguments", ""))
    except ValueError:  # a quote without its other one: what was told cannot be known
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
    """Those of our kernel, where operations took longer."""
    if not delays:
        return KERNEL
    return Costs(f"kernel, delayed: {delays}", delayed_costs(KERNEL.text, delays_of(delays)))
