# SPDX-License-Identifier: MIT
"""Runs a Linux guest that serves the policies for a number of seconds: start.py schedlab_tools.soak.guest SECONDS.

Its values are on its console (linux/guest/soak.sh).
"""

import shlex
import sys
from pathlib import Path

from schedlab.base.host.isolated import exit_on_signals
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.machines.linux import parts
from schedlab.machines.linux.guest import GuestJob, boot
from schedlab.paths import ROOT

SCRIPT = ROOT / "linux" / "guest" / "soak.sh"


def main(seconds: int) -> int:
    """Returns the exit status of the script."""
    job = GuestJob(
        files={"programs.tar": parts.build_programs_archive(), SCRIPT.name: SCRIPT},
        script=f"exec sh {SCRIPT.name} {seconds} {shlex.join(read_catalogue())}\n",
        cpus=2,
        repeatable=False,
        limit_s=seconds + 600,
        programs=(),
    )
    outcome = boot(job, Path("guest"))
    if outcome.message:
        print(outcome.message, file=sys.stderr)
    return outcome.status


if __name__ == "__main__":
    exit_on_signals()
    raise SystemExit(main(int(sys.argv[1])))
