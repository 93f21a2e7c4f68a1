# SPDX-License-Identifier: MIT
"""A laboratory for CPU schedulers, as a library.

`run` runs a workload under policies, `run_sweep` many configurations, and `replay` a recording.
`open` opens a run's folder and `open_runs` many. `compare`, `explain`, `query` and `write_report`
draw conclusions from runs. `check` and `score` judge a policy. `policies` and `workloads` list what
is built in. docs/api.md describes all functions; docs/tutorial.ipynb is a tour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schedlab.api import (
        Runs,
        check,
        compare,
        explain,
        open_run,
        open_runs,
        policies,
        query,
        replay,
        run,
        run_sweep,
        workloads,
        write_report,
    )
    from schedlab.api import open_run as open  # noqa: A004
    from schedlab.courses.scoring.candidate import score, score_many

__version__ = "0.2.0"

__all__ = [
    "Runs",
    "check",
    "compare",
    "explain",
    "open",
    "open_run",
    "open_runs",
    "policies",
    "query",
    "replay",
    "run",
    "run_sweep",
    "score",
    "score_many",
    "workloads",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used, to keep the command line's start fast."""
    if name in ("score", "score_many"):
        from schedlab.courses.scoring import candidate

        return getattr(candidate, name)
    if name in __all__:
        from schedlab import api

        return getattr(api, "open_run" if name == "open" else name)
    raise AttributeError(f"module 'schedlab' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
