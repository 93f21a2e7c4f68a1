# SPDX-License-Identifier: MIT
"""What if from here? Other futures of a moment, computed on the real kernel and shown side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.monitor import worker
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused
from schedlab.monitor.systems.recorded import recorded_setup
from schedlab.monitor.watched import Watched
from schedlab.monitor.worker import Tell
from schedlab.paths import new_runs_folder


@dataclass(frozen=True)
class Change:
    """What is done otherwise from the moment on."""

    policy: str
    """name or name:preset; "": the policy stays."""
    settings: Sequence[tuple[str, int]]

    @property
    def options(self) -> list[str]:
        """The same in the words of `./schedlab branch`."""
        policy = ["--policy", self.policy] if self.policy else []
        values = [word for name, value in self.settings for word in ("--set", f"{name}={value}")]
        return [*policy, *values]


async def what_if(session: Session, each: Watched, change: Change, tell: Tell) -> dict[str, str]:
    """Shows the moment's other future beside the unchanged one, both standing at the moment.

    Returns their letters, and the folder in which the futures are kept. Those that were shown before
    give way.
    """
    source = each.setup.source
    if each.system is None or each.system.no_branches or source is None:
        raise Refused(each.system.no_branches if each.system else "it has not begun yet")
    await each.stand()
    at_ns = each.shown_ns
    tell("its past is run once more")
    out = new_runs_folder(f"branch-{source.name}")
    # What happened at this moment is past.
    told = await worker.branch(source, at_ns + 1, change.options, out, tell)
    same = bool(told["unchanged_is_the_run"])
    folders = [Path(run["folder"]) for run in told["runs"]][same:]
    await each.leave_past()
    letters = await session.show_futures(each, [recorded_setup(place) for place in folders], at_ns)
    session.kept.append(out)
    return {
        "unchanged": each.letter if same else letters[0],
        "changed": letters[-1],
        "folder": str(out),
    }
