# SPDX-License-Identifier: MIT
"""What is shown of a system that has said nothing, or says nothing any more."""

from __future__ import annotations

from typing import cast, get_type_hints

from schedlab.monitor.frames import Metrics, ModelFrame, ProcessColumns, Timeline
from schedlab.monitor.system import Setup


def blank(setup: Setup, window_ns: int) -> ModelFrame:
    """Returns what is shown before its trace begins."""
    metrics = {
        name: 0 if hint in (int, float) else None for name, hint in get_type_hints(Metrics).items()
    }
    return {
        "now_ns": 0,
        "policy": str(setup.policy),
        "shares_by": "equal",
        "levels": False,
        "levels_rise": False,
        "shared_queue": False,
        "cpus": [],
        "processes": cast(ProcessColumns, {name: [] for name in get_type_hints(ProcessColumns)}),
        "metrics": cast(Metrics, {**metrics, "window_ns": window_ns}),
        "cost": {"steering": 0.0, "tracing": 0.0, "total": 0.0},
        "timeline": nothing(),
        "marks": [],
        "decisions": [],
        "events": 0,
        "lost": 0,
    }


def nothing() -> Timeline:
    """Nothing has happened."""
    return {"runs": [], "idle_while_queued": [], "thinned": 0}


def still(shown: ModelFrame) -> ModelFrame:
    """Returns the same, with nothing new."""
    return cast(ModelFrame, {**shown, "timeline": nothing(), "marks": [], "decisions": []})
