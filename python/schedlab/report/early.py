# SPDX-License-Identifier: MIT
"""A report while runs go on, made by a process of its own: `python start.py schedlab.report.early`.

On standard input it is told, in JSON, the `folder` of the runs, their `runs` by name, the report's place
(`out`), and what is `missing`, in Markdown. SIGTERM ends it without a rest.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from schedlab.errors import SchedlabError
from schedlab.report.build import write_report
from schedlab.runs.collection import Collection, kept_run


def main() -> None:
    """Makes the report. Ends with status 1, and a line that says why, if it cannot be made."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    told = json.load(sys.stdin)
    folder = Path(told["folder"])
    collection = Collection(kept_run(folder / name) for name in told["runs"])
    try:
        write_report(collection, Path(told["out"]), missing=told["missing"])
    except SchedlabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
