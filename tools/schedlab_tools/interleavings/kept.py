# SPDX-License-Identifier: MIT
"""A run that breaks, kept as any run's folder, with the turns under which it does."""

from __future__ import annotations

import shutil
from pathlib import Path

from schedlab import __version__
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spike import Spike
from schedlab.runs import results
from schedlab_tools.interleavings.holds import Hold
from schedlab_tools.interleavings.search import Found
from schedlab_tools.interleavings.trial import HOLDS, TICK_NS, Setup, carry_out, holds_of


def keep(found: Found, place: Path, scratch: Path) -> tuple[Hold, ...]:
    """Carries the small run out once more, and makes a run's folder of it, which the monitor plays. Returns its turns
    of other than normal length, as they were."""
    failure = carry_out(found.setup, found.holds, scratch)
    assert failure, "the same turns break the same"
    with results.new_folder(place) as folder:
        for name in (TRACE_FILE, HOLDS):
            if (scratch / name).exists():
                shutil.copy(scratch / name, folder / name)
        results.write_json(folder / results.MANIFEST, _manifest(found.setup, failure.words))
    return holds_of(scratch)


def _manifest(setup: Setup, message: str) -> dict[str, object]:
    run, release = setup.run, Spike().release()
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        "label": f"{setup.workload}-explored",
        "workload": setup.workload,
        "policy": str(setup.policy),
        "tunables": {},
        "cpus": setup.cpus,
        "seed": run.seed,
        "tick_ns": TICK_NS,
        "limit_ns": setup.limit_ns,
        "memory_mib": run.memory_mib,
        "boot_arguments": setup.arguments,
        "machine": Spike.name,
        "machine_version": f"{release.version}, with the turns of {HOLDS}",
        "machine_origin": release.origin,
        "repeatable": True,
        "status": "failed",
        "message": message,
    }
