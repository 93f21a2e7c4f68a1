# SPDX-License-Identifier: MIT
"""A simulated machine with all that was done to it: what is needed to have it again.

The same acts at the same times give the same machine and the same trace, however it came to those
times: in large pieces or small ones, at once or after a user went back. So a time before is
reached from the machine's beginning, by the acts that were done until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from schedlab.monitor.system import Refused, Setup, StepKind
from schedlab_simulator import ActRefused, RunFailed, Simulator, Status

OWN_PROGRAM = """
program monitor
  loop
    sleep 1000000000s
  end
"""
"""The first process's program. It does nothing for 31 years: the machine would end with it."""
_NEVER_NS = 900_000_000 * 1_000_000_000
"""What happens later than that is the end of that sleep."""
OWN_PIDS = frozenset({1, 2})
"""The PIDs of init, and of the process that sleeps."""
PROCESSES = 65_536
ADDED_STEPS = 1 << 20
"""Room for the steps of workloads that are added: the longest of ours has some hundreds."""
_EVENTS_MAX = 100_000
"""The most that a step looks at, such as ticks of a process that goes on."""

Act = Callable[[Simulator], int]
"""What is done to a machine from outside; gives a PID, or 0."""


@dataclass(frozen=True)
class _Done:
    """An act, and the time at which it was done."""

    time_ns: int
    act: Act


class SimulatedMachine:
    """One machine, from its beginning. All of it belongs to one thread at a time.

    `acts`: that shall be done to it when their times come. The machine stands after its first tick
    at first: then init has forked the process that sleeps, under every policy.
    """

    def __init__(self, setup: Setup, trace: Path, acts: Iterable[_Done] = ()) -> None:
        self._acts = list(acts)
        self._done = 0
        self._machine = Simulator(
            OWN_PROGRAM,
            policy=str(setup.policy),
            tunables=dict(setup.settings),
            cpus=setup.cpus,
            tick_ns=setup.tick_ns,
            seed=setup.seed,
            costs=setup.costs,
            processes=PROCESSES,
            trace=trace,
            trace_queues=True,
            added_steps=ADDED_STEPS,
        )
        while self._machine.counts().processes < len(OWN_PIDS):
            self._machine.run(self._next_tick(setup.tick_ns))
        self._machine.flush()

    def again(self, setup: Setup, trace: Path) -> SimulatedMachine:
        """Returns the same machine at its beginning."""
        return SimulatedMachine(setup, trace, self._acts)

    @property
    def now_ns(self) -> int:
        return self._machine.now

    @property
    def acts(self) -> int:
        """How many acts were done so far."""
        return self._done

    @property
    def records(self) -> int:
        """The records of its trace, so far."""
        return self._machine.counts().records

    def status(self) -> str:
        """Returns the text of sched_status."""
        return self._machine.status()

    def tunables(self) -> str:
        """Returns the text of sched_tunables."""
        return self._machine.tunables()

    # ---- acts

    def act(self, act: Act) -> int:
        """Does it now. What was to be done from here on, before a user went back, is forgotten.

        Refused: it cannot be done, and nothing has changed.
        """
        result = self._perform(act)
        del self._acts[self._done :]
        self._acts.append(_Done(self._machine.now, act))
        self._done += 1
        return result

    def _perform(self, act: Act) -> int:
        """CPUs hear of it at once: so it is the same whether or not another act follows now."""
        try:
            result = act(self._machine)
        except ActRefused as error:
            raise Refused(str(error)) from None
        self._machine.run(self._machine.now)
        self._machine.flush()
        return result

    # ---- time

    def advance(self, until_ns: int, patience_s: float) -> None:
        """Goes on to a time, or as far as it comes. RunFailed: it has failed, and stands."""
        end = monotonic() + patience_s
        while True:
            self._do_due()
            target = min(until_ns, self._next_act())
            patience = end - monotonic()
            if self._machine.now >= target or patience <= 0:
                return
            if self._machine.advance(target, patience) is Status.DONE:
                raise RunFailed("the machine's first process has ended")

    def step(self, kind: StepKind, tick_ns: int) -> None:
        """Goes on by one step. Refused: nothing is going to happen."""
        if kind is StepKind.TICK:
            self.advance(self._next_tick(tick_ns), float("inf"))
        elif kind is StepKind.MILLISECOND:
            self.advance(self.now_ns + 1_000_000, float("inf"))
        else:
            self._step_until_more(
                (lambda: self._machine.counts().decisions)
                if kind is StepKind.DECISION
                else (lambda: self.records)
            )

    def _step_until_more(self, count: Callable[[], int]) -> None:
        """Event by event, until there is more of it; or, if that takes too long, not quite."""
        before = count()
        for _ in range(_EVENTS_MAX):
            event = self._machine.next_time()
            coming = min(_NEVER_NS if event is None else event, self._next_act())
            if coming >= _NEVER_NS:
                raise Refused("nothing is going to happen: all processes wait; start a workload")
            self.advance(coming, float("inf"))
            self._machine.run(coming)
            if count() > before:
                break
        self._machine.flush()

    def _next_tick(self, tick_ns: int) -> int:
        return (self.now_ns // tick_ns + 1) * tick_ns

    def _next_act(self) -> int:
        return self._acts[self._done].time_ns if self._done < len(self._acts) else _NEVER_NS

    def _do_due(self) -> None:
        while self._next_act() <= self._machine.now:
            self._perform(self._acts[self._done].act)
            self._done += 1

    # ---- the end

    def close(self) -> None:
        """Its trace is whole then. Twice is once."""
        self._machine.close()
