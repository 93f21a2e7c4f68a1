# SPDX-License-Identifier: MIT
"""A recorded run once more, in which something is otherwise: for `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from schedlab.machines import Branching, machine_named
from schedlab.runs.branches import Attribute, Future

if TYPE_CHECKING:
    from schedlab.analysis.tables import Run
    from schedlab.base.toolchain.policies import PolicyChoice
    from schedlab.runs.replay import Otherwise
    from schedlab.trace import Trace


@dataclass(frozen=True)
class Instead:
    """What is otherwise."""

    without: Sequence[str] = ()
    """Processes (PID, name or group) that compute nothing."""
    policy: PolicyChoice | None = None
    attributes: Sequence[Attribute] = ()

    def __bool__(self) -> bool:
        return bool(self.without or self.policy or self.attributes)

    @property
    def title(self) -> str:
        """In words."""
        without = (f"without {each}" for each in self.without)
        policy = (f"under {self.policy}",) if self.policy else ()
        return ", ".join((*without, *policy, *map(str, self.attributes)))


@dataclass(frozen=True)
class Rerun:
    """The run as it was, once more, and otherwise."""

    how: str
    unchanged: Trace
    changed: Trace


@contextmanager
def rerun(opened: Run, instead: Instead, begin_ns: int | None) -> Iterator[Rerun]:
    """Carries it out: as a branch of the run from `begin_ns` on (None: from where what is measured begins), if its
    machine has branches; else as a replay in the simulator. A replay it also is without a process; and with
    attributes that are to hold from a process's fork on, which is so without `begin_ns`.

    Its files are there within the block.
    """
    from_a_moment = begin_ns is not None or not instead.attributes
    with TemporaryDirectory(prefix="schedlab-") as folder:
        place = Path(folder)
        if from_a_moment and not instead.without and _has_branches(opened):
            begin_ns = opened.window.begin_ns if begin_ns is None else begin_ns
            yield _branched(opened, instead, begin_ns, place)
        else:
            yield _replayed(opened, instead, place)


def _has_branches(opened: Run) -> bool:
    manifest = opened.manifest
    known = isinstance(machine_named(opened.setup.machine), Branching)
    return known and not {"branch", "recorded_from_ns"} & manifest.keys()


def _branched(opened: Run, instead: Instead, begin_ns: int, place: Path) -> Rerun:
    from schedlab.commands.branch import check
    from schedlab.commands.carrying_out import ended_by_signal
    from schedlab.runs import branching
    from schedlab.runs.branches import past
    from schedlab.units import format_time

    found = past(opened.folder)
    futures = [Future(), Future(instead.policy, (), tuple(instead.attributes))]
    check(found, begin_ns, futures)
    with ended_by_signal(lambda _: ""):
        unchanged, changed = branching.perform(found, begin_ns, futures, place / "branches")
    how = f"a branch of the run from {format_time(begin_ns)} on"
    return Rerun(how, _trace(unchanged.folder), _trace(changed.folder))


def _replayed(opened: Run, instead: Instead, place: Path) -> Rerun:
    from schedlab.commands.carrying_out import check_finished, perform
    from schedlab.runs.request import of_recording

    asked = of_recording(opened.folder)
    assert asked.replay
    changed = replace(
        asked,
        policies=(instead.policy,) if instead.policy else asked.policies,
        settings=() if instead.policy else asked.settings,
        replay=asked.replay.but(_otherwise(opened, instead), instead.title),
    )
    traces = []
    for name, request in (("unchanged", asked), ("changed", changed)):
        finished = perform(replace(request, out=place / name).plan(), request.machine, kept=False)
        check_finished(finished)
        traces.append(_trace(finished[0].folder))
    return Rerun("a replay in the simulator (docs/replay.md says how far to trust it)", *traces)


def _otherwise(opened: Run, instead: Instead) -> Otherwise:
    from schedlab.runs.replay import Otherwise

    idle = frozenset(life for each in instead.without for life in opened.lives(each))
    attributes: dict[int, dict[str, int]] = {}
    for each in instead.attributes:
        for life in opened.lives(each.who):
            attributes.setdefault(life, {})[each.name] = each.value
    return Otherwise(idle, attributes)


def _trace(folder: Path) -> Trace:
    from schedlab import trace
    from schedlab.machines.folder import TRACE_FILE

    return trace.read(folder / TRACE_FILE)
