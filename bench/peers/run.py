# SPDX-License-Identifier: MIT
"""One other simulator, on the work that `./schedlab dev bench simulator --peers` asks all of them for.

    python run.py NAME CPUS

runs in an environment of its own, which holds that simulator and nothing of schedlab. Prints JSON:
"speed", the decisions of one run of 100 processes that compute 1,000 units each, round-robin with a
slice of one, and the seconds of CPU time of the quickest of some runs; and the times at which the
processes of two small cases end, null for one that never does. "tie": the second arrives at the
moment at which the first one's slice ends. "gap": the second arrives when the first has long ended.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = list[tuple[int, int]]
"""Arrival and run time of each process, in units."""
Ends = list[Any]
"""When each has ended: int or None."""
Round = Callable[[], Any]

MANY: Work = [(0, 1000)] * 100
TIE: Work = [(0, 4), (2, 4)]
GAP: Work = [(0, 4), (10, 4)]
_LONG_ENOUGH = 2.0
"""Seconds after which no further run is made: the quick ones get many."""
_ROUNDS = 200


class Peer:
    """What a simulator needs to be asked alike. `prepare` is not timed, what it gives is."""

    cpus = (1,)

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        raise NotImplementedError

    def ends(self, result: Any, count: int) -> Ends:
        raise NotImplementedError


class OsSimulator(Peer):
    """os-simulator: C++ behind pybind11."""

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        from os_simulator import os_algorithms

        processes = _dictionaries(work)
        return lambda: os_algorithms.round_robin_scheduler(processes, slice_units)

    def ends(self, result: Any, count: int) -> Ends:
        found = {process["pid"]: process["finish_time"] for process in result}
        return [found.get(pid) for pid in range(count)]


class CpuScheduler(Peer):
    """cpu-scheduler: gives the list of all slices. Version 1.0 cannot be imported: it asks itself for
    a function that it does not have, and would then begin demonstrations with threads. So its
    round-robin is taken out of its file, as it is."""

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        found = importlib.util.find_spec("cpu_scheduler")
        assert found and found.origin
        tree = ast.parse(Path(found.origin).with_name("algorithms.py").read_text(encoding="utf-8"))
        wanted = [
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "round_robin"
        ]
        names: dict[str, Any] = {"deque": deque}
        exec(compile(ast.Module(wanted, []), "cpu_scheduler", "exec"), names)
        round_robin = names["round_robin"]
        processes = _dictionaries(work)
        return lambda: round_robin(processes, slice_units)

    def ends(self, result: Any, count: int) -> Ends:
        found = {pid: end for pid, _, end in result}
        return [found.get(pid) for pid in range(count)]


class Cpusched(Peer):
    """cpusched-ash-win-cpu: gives slices and metrics."""

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        from cpusched import Process, RoundRobin

        processes = [
            Process(str(pid), arrival_time=arrival, burst_time=units)
            for pid, (arrival, units) in enumerate(work)
        ]
        return lambda: RoundRobin(processes, slice_units).run()

    def ends(self, result: Any, count: int) -> Ends:
        return [result.finish_times.get(str(pid)) for pid in range(count)]


class Vance(Peer):
    """vance: goes from unit to unit."""

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        from vance import RR, Process, SimulationEngine

        processes = [
            Process(pid=pid, burst_time=units, arrival_time=arrival)
            for pid, (arrival, units) in enumerate(work)
        ]
        return lambda: SimulationEngine(RR(slice_units)).run(processes)

    def ends(self, result: Any, count: int) -> Ends:
        found = {one["pid"]: one["completion"] for one in result["individual_results"]}
        return [found.get(pid) for pid in range(count)]


class SimSo(Peer):
    """SimSo has no round-robin; this one is written by its guide, with its own timers and locks."""

    cpus = (1, 4)

    def prepare(self, work: Work, slice_units: int, cpus: int) -> Round:
        from simso.configuration import Configuration

        configuration = Configuration()
        total = sum(units for _, units in work) + max(arrival for arrival, _ in work)
        configuration.duration = (total + 1) * configuration.cycles_per_ms
        for pid, (arrival, units) in enumerate(work):
            configuration.add_task(
                name=f"T{pid}",
                identifier=pid + 1,
                period=total + 1,
                activation_date=arrival,
                wcet=units,
                deadline=total + 1,
            )
        for cpu in range(cpus):
            configuration.add_processor(name=f"CPU {cpu}", identifier=cpu + 1)
        configuration.scheduler_info.clas = _round_robin_of_simso(slice_units)
        configuration.check_all()
        return lambda: _run_simso(configuration)

    def ends(self, result: Any, count: int) -> Ends:
        found = {
            task.identifier - 1: job.end_date
            for task in result.task_list
            for job in task.jobs
            if job.end_date is not None
        }
        scale = result.cycles_per_ms
        return [None if found.get(pid) is None else found[pid] / scale for pid in range(count)]


def _run_simso(configuration: Any) -> Any:
    from simso.core import Model

    model = Model(configuration)
    model.run_model()
    return model


def _round_robin_of_simso(slice_units: int) -> type:
    from simso.core import Scheduler, Timer

    class RoundRobin(Scheduler):  # type: ignore[misc]
        """One queue; each CPU's slice ends at a multiple of the slice."""

        def init(self) -> None:
            self.queue: list[Any] = []
            for cpu in self.processors:
                Timer(
                    self.sim, RoundRobin.expire, (self, cpu), slice_units, one_shot=False, cpu=cpu
                ).start()

        def expire(self, cpu: Any) -> None:
            if cpu.running and cpu.running.is_active():
                self.queue.append(cpu.running)
            if self.queue:
                cpu.resched()

        def on_activate(self, job: Any) -> None:
            self.queue.append(job)
            job.cpu.resched()

        def on_terminated(self, job: Any) -> None:
            job.cpu.resched()

        def schedule(self, cpu: Any) -> Any:
            free = cpu if not cpu.running or cpu.running in self.queue else None
            free = free or next((one for one in self.processors if not one.running), None)
            if self.queue and free:
                return (self.queue.pop(0), free)
            return None

    return RoundRobin


def _dictionaries(work: Work) -> list[dict[str, int]]:
    return [
        {"pid": pid, "arrival_time": arrival, "burst_time": units}
        for pid, (arrival, units) in enumerate(work)
    ]


PEERS: dict[str, type[Peer]] = {
    "os-simulator": OsSimulator,
    "cpu-scheduler": CpuScheduler,
    "cpusched-ash-win-cpu": Cpusched,
    "vance": Vance,
    "simso": SimSo,
}


def speed_of(peer: Peer, cpus: int) -> dict[str, float]:
    """Decisions of a run, and the CPU time of the quickest of some."""
    seconds = []
    while len(seconds) < _ROUNDS and sum(seconds) < _LONG_ENOUGH:
        once = peer.prepare(MANY, 1, cpus)
        began = time.process_time()
        once()
        seconds.append(time.process_time() - began)
    return {"decisions": sum(units for _, units in MANY), "seconds": min(seconds)}


def case(peer: Peer, work: Work) -> Ends:
    return peer.ends(peer.prepare(work, 2, 1)(), len(work))


def main() -> None:
    name, cpus = sys.argv[1], int(sys.argv[2])
    told: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        peer = PEERS[name]()
        told = {"speed": speed_of(peer, cpus), "tie": case(peer, TIE), "gap": case(peer, GAP)}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
