# SPDX-License-Identifier: MIT
"""The simulator here, and a policy in a WebAssembly machine: it has its own memory, exact limits, and nothing else.

The simulator asks it at each hook (sim/apart/apart.h), and what it answers is held against the rules of the mechanism.
So all that a policy can bring about is decisions; times, the trace and what is measured are the simulator's.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.errors import SchedlabError
from schedlab.grading.compiling import MEMORY, SUBMISSION, Compiled
from schedlab.grading.lab import PROCESSES_MAX, Lab, LabTest
from schedlab.paths import BUILD
from schedlab.workload.text import text_of

LIBRARY = BUILD / "apart" / "libschedlab-apart.so"
HOOK_INSTRUCTIONS = 10_000_000
"""What one call of a hook may take."""
RUN_INSTRUCTIONS = 4_000_000_000
RUN_CALLS = 250_000
"""What a whole run may."""
_FRAME = re.compile(rf"- (?:\S+!)?(\w+)\n\s+at \S*{SUBMISSION}:(\d+)")
_DEEP = 20
"""Frames of one function: it calls itself."""


class Broken(Exception):
    """The policy broke a rule, or its run cannot be; the text says which and where."""


@dataclass(frozen=True)
class Ran:
    """A run that has ended well."""

    trace: Path
    calls: int
    """How often a hook was called."""
    instructions: int
    """What these have executed, of WebAssembly."""


def run(lab: Lab, test: LabTest, policy: Compiled, trace: Path) -> Ran:
    """Runs a test's workload under a policy. Raises Broken."""
    import schedlab_simulator as simulator

    with _policy(policy) as machine, simulator.using(LIBRARY):
        machine.begin(lab.policy)
        text = text_of(test.workload, test.seed, test.tick_ns, test.cpus)
        try:
            with simulator.Simulator(
                text,
                policy=lab.policy,
                cpus=test.cpus,
                tick_ns=test.tick_ns,
                seed=test.seed,
                tunables=test.settings,
                costs=test.costs,
                processes=PROCESSES_MAX,
                trace=trace,
                trace_queues=True,
            ) as running:
                done = running.run(test.limit_ns) is simulator.Status.DONE
                if done:
                    running.audit()
        except simulator.SimulatorError as error:
            raise Broken(machine.why or str(error)) from None
        machine.check()
        if kills := _library().simulator_apart_kills():
            raise Broken(f"it ended processes by TICK_KILL, {kills} in all: no test asks for that")
        if not done:
            raise Broken(
                f"the run has not ended after {test.limit_ns / 1e6:,.0f} ms: a process that is not picked does not end"
            )
        return Ran(trace, machine.calls, machine.instructions)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    for name, given in (
        ("message", ctypes.c_void_p),
        ("answer_bytes", ctypes.c_uint64),
        ("hook", ctypes.c_char_p),
        ("trouble", ctypes.c_char_p),
        ("begin", ctypes.c_bool),
        ("kills", ctypes.c_uint64),
    ):
        getattr(library, f"simulator_apart_{name}").restype = given
    return library


@cache
def _engine() -> Any:
    os.environ["WASMTIME_BACKTRACE_DETAILS"] = "1"
    import wasmtime

    config = wasmtime.Config()
    config.consume_fuel = True
    engine = wasmtime.Engine(config)
    atexit.register(
        engine.close
    )  # the library has lost its own functions when Python takes it away
    return engine


@contextmanager
def _policy(policy: Compiled) -> Iterator[_Machine]:
    import wasmtime

    store = wasmtime.Store(_engine())
    try:
        store.set_limits(memory_size=MEMORY, instances=1, memories=1)
        yield _Machine(store, policy)
    finally:
        store.close()


_CARRIER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64)


class _Machine:
    """A policy's machine, which answers the simulator's calls."""

    def __init__(self, store: Any, policy: Compiled) -> None:
        import wasmtime

        self.why = ""
        """Why it stopped; "": it has not."""
        self.calls = self.instructions = 0
        self._raised: BaseException | None = None
        self._store = store
        self._name = policy.source.name
        store.set_fuel(HOOK_INSTRUCTIONS)
        try:
            module = wasmtime.Module(_engine(), policy.module)
            exports = wasmtime.Instance(store, module, []).exports(store)
            serve, message, memory = (exports[name] for name in ("serve", "message", "memory"))
            if (
                not isinstance(serve, wasmtime.Func)
                or not isinstance(message, wasmtime.Func)
                or not isinstance(memory, wasmtime.Memory)
            ):
                raise TypeError("it exports something else than it is to")
            self._place = int(message(store))
        except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError, TypeError) as error:
            raise Broken(f"what is compiled of it cannot be run: {_first_line(error)}") from None
        self._serve = serve
        self._memory = ctypes.addressof(memory.data_ptr(store).contents)
        self._bytes = memory.data_len(store)
        library = _library()
        self._answer = library.simulator_apart_answer_bytes()
        self._ours = library.simulator_apart_message()
        self._carrier = _CARRIER(self._carry)

    def begin(self, name: str) -> None:
        """Lets the policy describe itself. Raises Broken."""
        library = _library()
        good = library.simulator_apart_begin(self._carrier)
        self.check()
        if not good:
            raise Broken(self.why or library.simulator_apart_trouble().decode(errors="replace"))

    def check(self) -> None:
        """Raises what came up within a call, where it could not be raised."""
        if self._raised:
            raise self._raised
        if self.why:
            raise Broken(self.why)

    def _carry(self, number: int) -> bool:
        """Carries the message's call there, and its answer back. Called by the library."""
        try:
            return self._carried(number)
        except BaseException as error:
            self._raised = error
            return False

    def _carried(self, number: int) -> bool:
        import wasmtime

        self.calls += 1
        if self.calls > RUN_CALLS or self.instructions > RUN_INSTRUCTIONS:
            self.why = "its run does not end: the policy is asked again and again"
            return False
        there = self._memory + self._place
        if not 0 <= self._place <= self._bytes - number:
            self.why = "it has moved its own memory"
            return False
        self._store.set_fuel(HOOK_INSTRUCTIONS)
        ctypes.memmove(there + self._answer, self._ours + self._answer, number - self._answer)
        try:
            self._serve(self._store)
            good = True
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            good = False
            ctypes.memmove(self._ours, there, self._answer)
            self.why = self._explained(error)
        self.instructions += HOOK_INSTRUCTIONS - self._store.get_fuel()
        if good:
            ctypes.memmove(self._ours, there, self._answer)
        return good

    def _explained(self, error: Any) -> str:
        """What stopped the policy's machine, with the hook, and the line of the submission."""
        import wasmtime

        library = _library()
        hook = library.simulator_apart_hook().decode()
        trouble = library.simulator_apart_trouble().decode(errors="replace")
        code = getattr(error, "trap_code", None)
        frames = _FRAME.findall(str(error))
        place = f", in {frames[0][0]}() at {self._name}:{frames[0][1]}" if frames else ""
        recursive = any(
            sum(name == other for other, _ in frames) >= _DEEP
            for name in {name for name, _ in frames}
        )
        codes = wasmtime.TrapCode
        if recursive or code == codes.STACK_OVERFLOW:
            what = "it calls itself without end"
        elif code == codes.OUT_OF_FUEL:
            what = f"it does not end within {HOOK_INSTRUCTIONS:,} instructions"
        elif code == codes.UNREACHABLE:
            what = trouble or "it comes to where it must not"
        elif code == codes.INTEGER_DIVISION_BY_ZERO:
            what = "it divides by zero"
        elif code == codes.MEMORY_OUT_OF_BOUNDS:
            what = "it reads or writes where nothing is"
        else:
            what = _first_line(error)
        return f"{hook}(): {what}{place}" if hook else f"{what}{place}"


def _first_line(error: BaseException) -> str:
    """The cause that a message of the library ends with."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition("wasm trap: ")[2] or lines[-1] if lines else "for no known reason"


def need_library() -> None:
    """Builds the simulator's library, if need be. Raises SchedlabError."""
    from schedlab.toolchain.build import build

    build(str(LIBRARY.relative_to(BUILD.parent)))
    if not LIBRARY.exists():
        raise SchedlabError(f"{LIBRARY} was not built")
