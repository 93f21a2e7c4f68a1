# SPDX-License-Identifier: MIT
"""Runs a policy in a WebAssembly machine with separate memory and exact limits, driven by the simulator.

The simulator calls it at each hook (sim/apart/apart.h) and checks its answers against the rules of
the mechanism. So a policy affects decisions only; the simulator produces times, trace and metrics.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from schedlab.base.display.numbers import milliseconds
from schedlab.base.toolchain.needs import need_extra
from schedlab.courses.submissions.compiling import MEMORY, SUBMISSION, Compiled
from schedlab.courses.submissions.trial import PROCESSES_MAX, Trial
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD

LIBRARY = BUILD / "apart" / "libschedlab-apart.so"
HOOK_INSTRUCTIONS = 10_000_000
"""Maximum instructions of one hook call."""
RUN_INSTRUCTIONS = 4_000_000_000
RUN_CALLS = 250_000
"""Maximum hook calls of a run."""
CPUS_OF_CALLS = 16
"""The limit of calls grows in proportion above this number of CPUs."""
_FRAME = re.compile(rf"- (?:\S+!)?(\w+)\n\s+at \S*{SUBMISSION}:(\d+)")
_LOCK = threading.Lock()
"""Serialises runs, because the simulator's library has one policy and one simulator at a time."""
_DEEP = 20
"""Frames of the same function that indicate endless recursion."""


class Broken(Exception):
    """The policy broke a rule, or cannot be run; the text says which rule and where."""


@dataclass(frozen=True)
class Ran:
    """A successful run."""

    trace: Path
    calls: int
    """Number of hook calls."""
    instructions: int
    """WebAssembly instructions of the hooks, without the transport of calls and answers."""


def run(test: Trial, policy: Compiled, trace: Path) -> Ran:
    """Runs a trial's workload under a policy; one run at a time per process. Raises Broken."""
    import schedlab_simulator as simulator

    with _LOCK, _policy(policy, test.cpus) as machine, simulator.using(LIBRARY):
        machine.begin()
        try:
            with simulator.Simulator(
                _workload(test.played),
                policy=policy.name,
                cpus=test.cpus,
                tick_ns=test.tick_ns,
                seed=test.seed,
                tunables=test.settings,
                costs=test.costs,
                processes=PROCESSES_MAX,
                trace=trace,
                trace_queues=True,
                policy_clock=test.policy_clock_ns,
                policy_run_time=test.policy_run_time_ns,
            ) as running:
                done = running.run(test.limit_ns) is simulator.Status.DONE
                if done:
                    running.audit()
        except simulator.SimulatorError as error:
            raise Broken(machine.why or str(error)) from None
        machine.check()
        if kills := _library().simulator_separate_kills():
            raise Broken(f"it ended {kills} processes with TICK_KILL, which no test requires")
        if not done:
            raise Broken(
                f"the run did not end within {milliseconds(test.limit_ns, 0)}: a process "
                "that is never picked cannot end"
            )
        return Ran(trace, machine.calls, machine.instructions)


@lru_cache(128)
def _workload(played: bytes) -> Any:
    """Returns a parsed workload; cached, because many policies run the same file."""
    from schedlab_simulator import Workload

    return Workload.of_file(played)


_FUNCTIONS = ("hear", "serve", "answer")
"""Functions of the machine, in the order of their calls at each hook."""


class _Driven(ctypes.Structure):
    """struct wasmtime_machine of sim/apart/wasmtime.c."""

    _fields_ = (
        ("place", ctypes.c_uint64),
        ("room", ctypes.c_uint64),
        ("instructions_most", ctypes.c_uint64),
        ("calls_most", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
        ("is_endless", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
        ("memory", ctypes.c_void_p),
        ("hook_instructions", ctypes.c_uint64),
        ("set_fuel", ctypes.c_void_p),
        ("get_fuel", ctypes.c_void_p),
        ("call", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("trap", ctypes.c_void_p),
    )


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    for name, given in (
        ("hook", ctypes.c_char_p),
        ("trouble", ctypes.c_char_p),
        ("begin", ctypes.c_bool),
        ("kills", ctypes.c_uint64),
    ):
        getattr(library, f"simulator_separate_{name}").restype = given
    return library


@cache
def _engine() -> Any:
    """Returns wasmtime's engine; sets up the library, so it must be called before its import."""
    os.environ["WASMTIME_BACKTRACE_DETAILS"] = "1"
    import wasmtime

    config = wasmtime.Config()
    config.consume_fuel = True
    engine = wasmtime.Engine(config)

    def close() -> None:
        """Closes the engine before Python unloads the library's functions."""
        _module.cache_clear()
        engine.close()

    atexit.register(close)
    return engine


@lru_cache(2)
def _module(content: bytes) -> Any:
    """Returns compiled code, cached for repeated runs of one or two policies."""
    engine = _engine()
    import wasmtime

    return wasmtime.Module(engine, content)


@contextmanager
def _policy(policy: Compiled, cpus: int) -> Iterator[_Machine]:
    engine = _engine()
    import wasmtime

    store = wasmtime.Store(engine)
    try:
        store.set_limits(memory_size=MEMORY, instances=1, memories=1)
        yield _Machine(store, policy, cpus)
    finally:
        store.close()


class _Machine:
    """A policy's machine, driven by the simulator's library; no Python code runs during a run."""

    def __init__(self, store: Any, policy: Compiled, cpus: int) -> None:
        import wasmtime
        from wasmtime import _ffi

        self._why = ""
        self._name = policy.source.name
        store.set_fuel(HOOK_INSTRUCTIONS)
        try:
            exports = wasmtime.Instance(store, _module(policy.module), []).exports(store)
            message, memory = exports["message"], exports["memory"]
            if not isinstance(message, wasmtime.Func) or not isinstance(memory, wasmtime.Memory):
                raise TypeError("its exports are not the expected ones")
            self._functions: dict[str, wasmtime.Func] = {}
            for name in _FUNCTIONS:
                function = exports[name]
                if not isinstance(function, wasmtime.Func):
                    raise TypeError("its exports are not the expected ones")
                kind = function.type(store)
                if kind.params or kind.results:
                    raise TypeError("its function has parameters or a result")
                self._functions[name] = function
            place = int(message(store))
        except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError, TypeError) as error:
            raise Broken(f"the compiled policy cannot be run: {_first_line(error)}") from None
        room = memory.data_len(store)
        if not 0 <= place < room:
            raise Broken("the compiled policy cannot be run: the address of its message is invalid")

        def address(function: Any) -> int | None:
            return ctypes.cast(function, ctypes.c_void_p).value

        self._driven = _Driven(
            context=address(store._context()),
            **{
                name: ctypes.addressof(function._func) for name, function in self._functions.items()
            },
            memory=ctypes.addressof(memory.data_ptr(store).contents),
            place=place,
            room=room - place,
            hook_instructions=HOOK_INSTRUCTIONS,
            instructions_most=RUN_INSTRUCTIONS,
            calls_most=RUN_CALLS * max(cpus, CPUS_OF_CALLS) // CPUS_OF_CALLS,
            set_fuel=address(_ffi.dll.wasmtime_context_set_fuel),
            get_fuel=address(_ffi.dll.wasmtime_context_get_fuel),
            call=address(_ffi.dll.wasmtime_func_call_unchecked),
        )

    @property
    def calls(self) -> int:
        return int(self._driven.calls)

    @property
    def instructions(self) -> int:
        return int(self._driven.instructions)

    def begin(self) -> None:
        """Initialises the policy's description. Raises Broken."""
        library = _library()
        good = library.simulator_separate_begin(ctypes.byref(self._driven))
        self.check()
        if not good:
            raise Broken(library.simulator_separate_trouble().decode(errors="replace"))

    def check(self) -> None:
        """Raises Broken if the machine has stopped."""
        if why := self.why:
            raise Broken(why)

    @property
    def why(self) -> str:
        """Why the machine has stopped; empty if it has not."""
        self._why = self._why or self._find_symbol()
        return self._why

    def _find_symbol(self) -> str:
        import wasmtime
        from wasmtime import _ffi

        driven = self._driven
        if driven.is_endless:
            return "its run does not end: the policy is asked again and again"
        if driven.trap:
            trap = ctypes.cast(driven.trap, ctypes.POINTER(_ffi.wasm_trap_t))
            return self._explained(wasmtime.Trap._from_ptr(trap))
        if driven.error:
            error = ctypes.cast(driven.error, ctypes.POINTER(_ffi.wasmtime_error_t))
            return self._explained(wasmtime.WasmtimeError._from_ptr(error))
        return ""

    def _explained(self, error: Any) -> str:
        """Returns what stopped the machine, with the hook and the submission's line."""
        import wasmtime

        library = _library()
        hook = library.simulator_separate_hook().decode()
        trouble = library.simulator_separate_trouble().decode(errors="replace")
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
            what = trouble or "it reaches unreachable code"
        elif code == codes.INTEGER_DIVISION_BY_ZERO:
            what = "it divides by zero"
        elif code == codes.MEMORY_OUT_OF_BOUNDS:
            what = "it reads or writes where nothing is"
        else:
            what = _first_line(error)
        return f"{hook}(): {what}{place}" if hook else f"{what}{place}"


def _first_line(error: BaseException) -> str:
    """Returns the cause at the end of a library's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition("wasm trap: ")[2] or lines[-1] if lines else "for no known reason"


def need_library() -> None:
    """Installs wasmtime and builds the simulator's library if necessary. Raises SchedlabError."""
    from schedlab.base.toolchain.build import build

    need_extra("courses")
    build(str(LIBRARY.relative_to(BUILD.parent)))
    if not LIBRARY.exists():
        raise SchedlabError(f"{LIBRARY} was not built; run `make`, and read its messages")
