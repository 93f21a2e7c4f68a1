# SPDX-License-Identifier: MIT
"""Boots our kernel on rvsim, a cycle-level emulator whose CPUs run side by side, with caches.

    python run_rvsim.py IMAGE ENTRY CPUS CYCLES

runs in an environment of its own, which holds rvsim and nothing of schedlab. CPUs carry out one instruction
at a time, in order; a cycle is a nanosecond of the device tree's clock. Prints JSON: the "console", the
"cycles" that it took, and the exit "status", null if CYCLES were too few.
"""

from __future__ import annotations

import json
import sys

import rvsim
from rvsim.config._serialize import _config_to_dict_impl

MEMORY = 256 << 20


def configuration(entry: int, cpus: int) -> dict[str, object]:
    several = {
        "coherence": rvsim.Coherence(
            home_agent=rvsim.HomeAgent.SnoopFilter(), interconnect=rvsim.Interconnect.Crossbar()
        )
    }
    chosen = rvsim.Config(
        hart_count=cpus,
        ram_size=MEMORY,
        console="captured",
        clint_divider=1,
        cpu_clock_mhz=1000,
        backend=rvsim.Backend.InOrder(),
        width=1,
        **(several if cpus > 1 else {}),
    )
    made = _config_to_dict_impl(chosen)
    # Else it takes the image for a program without an operating system, and translates no address.
    made["general"] |= {"direct_mode": False, "start_pc": entry}
    return made


def main(image: str, entry: str, cpus: str, cycles: str) -> None:
    machine = rvsim.Simulator(configuration(int(entry), int(cpus)), binary=image)
    status = machine.run(limit=int(cycles))
    print(
        json.dumps({"console": machine.read_console(), "cycles": machine.cycle, "status": status})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
