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
from schedlab.courses.reasons import reason
from schedlab.courses.submissions.compiling import MEMORY_BYTES, SUBMISSION, CompiledPolicy
from schedlab.courses.submissions.trial import PROCESSES_MAX, Trial
from schedlab.errors import SchedlabError
from schedlab.paths import BUILD_FOLDER

SIMULATOR_LIBRARY = BUILD_FOLDER / "apart" / "libschedlab-apart.so"
HOOK_INSTRUCTIONS = 10_000_000
"""Maximum instructions of one hook call."""
RUN_INSTRUCTIONS = 4_000_000_000
RUN_CALLS = 250_000
"""Maximum hook calls of a run."""
CPUS_WITH_BASE_CALLS = 16
"""The limit of calls grows in proportion above this number of CPUs."""
_FRAME_PATTERN = re.compile(rf"- (?:\S+!)?(\w+)\n\s+at \S*{SUBMISSION}:(\d+)")
_RUN_LOCK = threading.Lock()
"""Serialises runs, because the simulator's library has one policy and one simulator at a time."""
_RECURSION_FRAMES = 20
"""Frames of the same function that indicate endless recursion."""


class PolicyBroken(Exception):
    """The policy broke a rule, or cannot be run; the text says which rule and where."""


@dataclass(frozen=True)
class RunResult:
    """The trace file and the counts of a successful run."""

    trace: Path
    calls: int
    """Number of hook calls."""
    instructions: int
    """WebAssembly instructions of the hooks, without the transport of calls and answers."""


def run(trial: Trial, policy: CompiledPolicy, trace: Path) -> RunResult:
    """Runs a trial's workload under a policy; one run at a time per process. Raises PolicyBroken."""
    import schedlab_simulator as simulator

    with (
        _RUN_LOCK,
        _policy_machine(policy, trial.cpus) as machine,
        simulator.using(SIMULATOR_LIBRARY),
    ):
        machine.initialise()
        try:
            with simulator.Simulator(
                _parsed_workload(trial.encoded_workload),
                policy=policy.name,
                cpus=trial.cpus,
                tick_ns=trial.tick_ns,
                seed=trial.seed,
                tunables=trial.settings,
                costs=trial.costs,
                processes=PROCESSES_MAX,
                trace=trace,
                trace_queues=True,
                policy_clock=trial.policy_clock_ns,
                policy_run_time=trial.policy_run_time_ns,
            ) as simulation:
                has_ended = simulation.run(trial.limit_ns) is simulator.Status.DONE
                if has_ended:
                    simulation.audit()
        except simulator.SimulatorError as error:
            raise PolicyBroken(machine.failure or str(error)) from None
        machine.raise_if_stopped()
        if kills := _library().simulator_separate_kills():
            raise PolicyBroken(reason("kills", count=kills))
        if not has_ended:
            raise PolicyBroken(reason("not_ended", limit=milliseconds(trial.limit_ns, 0)))
        return RunResult(trace, machine.calls, machine.instructions)


@lru_cache(128)
def _parsed_workload(encoded_workload: bytes) -> Any:
    """Returns a parsed workload; cached, because many policies run the same file."""
    from schedlab_simulator import Workload

    return Workload.of_file(encoded_workload)


_MACHINE_FUNCTIONS = ("hear", "serve", "answer")
"""Functions of the machine, in the order of their calls at each hook."""


class _WasmtimeMachine(ctypes.Structure):
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
        *((name, ctypes.c_void_p) for name in _MACHINE_FUNCTIONS),
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
    """Returns the simulator's library with the types of its functions."""
    library = ctypes.CDLL(str(SIMULATOR_LIBRARY))
    for name, result_type in (
        ("hook", ctypes.c_char_p),
        ("trouble", ctypes.c_char_p),
        ("begin", ctypes.c_bool),
        ("kills", ctypes.c_uint64),
    ):
        getattr(library, f"simulator_separate_{name}").restype = result_type
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
        _compiled_module.cache_clear()
        engine.close()

    atexit.register(close)
    return engine


@lru_cache(2)
def _compiled_module(content: bytes) -> Any:
    """Returns compiled code, cached for repeated runs of one or two policies."""
    engine = _engine()
    import wasmtime

    return wasmtime.Module(engine, content)


@contextmanager
def _policy_machine(policy: CompiledPolicy, cpus: int) -> Iterator[_PolicyMachine]:
    """Gives a policy's machine, and frees it after the block."""
    engine = _engine()
    import wasmtime

    store = wasmtime.Store(engine)
    try:
        store.set_limits(memory_size=MEMORY_BYTES, instances=1, memories=1)
        yield _PolicyMachine(store, policy, cpus)
    finally:
        store.close()


class _PolicyMachine:
    """A policy's machine, driven by the simulator's library; no Python code runs during a run."""

    def __init__(self, store: Any, policy: CompiledPolicy, cpus: int) -> None:
        """Creates the machine of a policy in the store."""
        import wasmtime
        from wasmtime import _ffi

        self._failure = ""
        self._name = policy.source.name
        store.set_fuel(HOOK_INSTRUCTIONS)
        try:
            exports = wasmtime.Instance(store, _compiled_module(policy.module), []).exports(store)
            message, memory = exports["message"], exports["memory"]
            if not isinstance(message, wasmtime.Func) or not isinstance(memory, wasmtime.Memory):
                raise TypeError("its exports are not the expected ones")
            self._functions: dict[str, wasmtime.Func] = {}
            for name in _MACHINE_FUNCTIONS:
                function = exports[name]
                if not isinstance(function, wasmtime.Func):
                    raise TypeError("its exports are not the expected ones")
                function_type = function.type(store)
                if function_type.params or function_type.results:
                    raise TypeError("its function has parameters or a result")
                self._functions[name] = function
            message_address = int(message(store))
        except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError, TypeError) as error:
            raise PolicyBroken(
                f"the compiled policy cannot be run: {_first_line(error)}; keep all data in the "
                "state of tasks, queues and the scheduler"
            ) from None
        memory_bytes = memory.data_len(store)
        if not 0 <= message_address < memory_bytes:
            raise PolicyBroken(
                "the compiled policy cannot be run: the address of its message is invalid"
            )

        def address(function: Any) -> int | None:
            """Returns the address of a function's code; None for a missing function."""
            return ctypes.cast(function, ctypes.c_void_p).value

        self._machine_struct = _WasmtimeMachine(
            context=address(store._context()),
            **{
                name: ctypes.addressof(function._func) for name, function in self._functions.items()
            },
            memory=ctypes.addressof(memory.data_ptr(store).contents),
            place=message_address,
            room=memory_bytes - message_address,
            hook_instructions=HOOK_INSTRUCTIONS,
            instructions_most=RUN_INSTRUCTIONS,
            calls_most=RUN_CALLS * max(cpus, CPUS_WITH_BASE_CALLS) // CPUS_WITH_BASE_CALLS,
            set_fuel=address(_ffi.dll.wasmtime_context_set_fuel),
            get_fuel=address(_ffi.dll.wasmtime_context_get_fuel),
            call=address(_ffi.dll.wasmtime_func_call_unchecked),
        )

    @property
    def calls(self) -> int:
        return int(self._machine_struct.calls)

    @property
    def instructions(self) -> int:
        return int(self._machine_struct.instructions)

    def initialise(self) -> None:
        """Initialises the policy's description. Raises PolicyBroken."""
        library = _library()
        is_ready = library.simulator_separate_begin(ctypes.byref(self._machine_struct))
        self.raise_if_stopped()
        if not is_ready:
            raise PolicyBroken(library.simulator_separate_trouble().decode(errors="replace"))

    def raise_if_stopped(self) -> None:
        """Raises PolicyBroken if the machine has stopped."""
        if why := self.failure:
            raise PolicyBroken(why)

    @property
    def failure(self) -> str:
        """Why the machine has stopped, as first seen; empty if it has not."""
        self._failure = self._failure or self._stop_cause()
        return self._failure

    def _stop_cause(self) -> str:
        """Returns why the machine has stopped; empty if it has not."""
        import wasmtime
        from wasmtime import _ffi

        machine_struct = self._machine_struct
        if machine_struct.is_endless:
            return "its run does not end: the policy is asked again and again"
        if machine_struct.trap:
            trap = ctypes.cast(machine_struct.trap, ctypes.POINTER(_ffi.wasm_trap_t))
            return self._failure_text(wasmtime.Trap._from_ptr(trap))
        if machine_struct.error:
            error = ctypes.cast(machine_struct.error, ctypes.POINTER(_ffi.wasmtime_error_t))
            return self._failure_text(wasmtime.WasmtimeError._from_ptr(error))
        return ""

    def _failure_text(self, error: Any) -> str:
        """Returns what stopped the machine, with the hook and the submission's line."""
        import wasmtime

        library = _library()
        hook = library.simulator_separate_hook().decode()
        trouble = library.simulator_separate_trouble().decode(errors="replace")
        code = getattr(error, "trap_code", None)
        frames = _FRAME_PATTERN.findall(str(error))
        location = f", in {frames[0][0]}() at {self._name}:{frames[0][1]}" if frames else ""
        recursive = any(
            sum(name == name_in_frame for name_in_frame, _ in frames) >= _RECURSION_FRAMES
            for name in {name for name, _ in frames}
        )
        codes = wasmtime.TrapCode
        if recursive or code == codes.STACK_OVERFLOW:
            cause = "it calls itself without end"
        elif code == codes.OUT_OF_FUEL:
            cause = f"it does not end within {HOOK_INSTRUCTIONS:,} instructions"
        elif code == codes.UNREACHABLE:
            cause = trouble or "it reaches unreachable code"
        elif code == codes.INTEGER_DIVISION_BY_ZERO:
            cause = "it divides by zero"
        elif code == codes.MEMORY_OUT_OF_BOUNDS:
            cause = "it reads or writes where nothing is"
        else:
            cause = _first_line(error)
        return f"{hook}(): {cause}{location}" if hook else f"{cause}{location}"


def _first_line(error: BaseException) -> str:
    """Returns the cause at the end of a library's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition("wasm trap: ")[2] or lines[-1] if lines else "for no known reason"


def need_library() -> None:
    """Installs wasmtime and builds the simulator's library if necessary. Raises SchedlabError."""
    from schedlab.base.toolchain.build import build

    need_extra("courses")
    build(str(SIMULATOR_LIBRARY.relative_to(BUILD_FOLDER.parent)))
    if not SIMULATOR_LIBRARY.exists():
        raise SchedlabError(f"{SIMULATOR_LIBRARY} was not built; run `make`, and read its messages")
