# SPDX-License-Identifier: MIT
"""Defines the behaviour of processes: programs of steps, as text or as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedlab.workload.binary_steps import WordsRefused, encode_workload_text
from schedlab.workload.format import HEADER, MAGIC
from schedlab_simulator.declarations import WorkloadRefused
from schedlab_simulator.library import library

Steps = npt.NDArray[np.void]
"""A row for each step, with the columns of struct workload_step (abi/workload_steps.h)."""


_TICK = HEADER.fields["tick_ns"][1] if HEADER.fields else 0


class Workload:
    """Programs by name. The first process runs the first program.

    `programs`: name to steps, each a row of `kind`, `detail`, `reserved`, `target` and `value` (see
    step_type(), step_kind()). The last step of a program is EXIT. `channels`: the initial number of
    items in each channel. `texts`: referenced by SET_POLICY and SET_TUNABLE.
    """

    def __init__(
        self,
        programs: Mapping[str, Steps],
        channels: Sequence[int] = (),
        texts: Sequence[str] = (),
    ) -> None:
        self.programs = {name: np.ascontiguousarray(steps) for name, steps in programs.items()}
        self.channels = tuple(channels)
        self.texts = tuple(texts)
        for name, steps in self.programs.items():
            if steps.dtype != step_type() or steps.ndim != 1:
                raise WorkloadRefused(
                    f"program {name}: steps must be a one-dimensional array of step_type()"
                )

    @classmethod
    def read(cls, text: str, tick_ns: int = 1_000_000, name: str = "workload") -> Workload:
        """Parses text in the format of docs/simulator.md. `name`: the text's name in errors. Raises WorkloadRefused."""
        if not isinstance(tick_ns, int) or not 1000 <= tick_ns <= 10**12:
            raise WorkloadRefused(f"a tick of {tick_ns!r} ns: out of range; use 1 us to 1000 s")
        try:
            return cls.of_file(encode_workload_text(text, tick_ns, name), tick_ns, name)
        except WordsRefused as error:
            raise WorkloadRefused(str(error)) from None

    @classmethod
    def of_file(
        cls, contents: bytes, tick_ns: int | None = None, name: str = "workload"
    ) -> Workload:
        """Reads the bytes of a workload file (abi/workload_file.h). Raises WorkloadRefused.

        `tick_ns`: the required tick length; None: any. `name`: the file's name in errors.
        """
        lib = library()
        raw = lib.ffi.new("struct simulator_workload *")
        error = lib.ffi.new("struct simulator_error *")
        file_tick = int.from_bytes(contents[_TICK : _TICK + 8], "little")
        used_tick = file_tick if tick_ns is None else tick_ns
        data = lib.ffi.from_buffer(contents)
        try:
            read = lib.c.simulator_read_workload(
                raw, name.encode(), data, len(contents), used_tick, error
            )
        except (OverflowError, TypeError) as problem:
            raise WorkloadRefused(f"tick_ns: {problem}") from None
        if not read:
            raise WorkloadRefused(lib.message(error))
        try:
            return cls._copy_of(raw)
        finally:
            lib.c.simulator_free_workload(raw)

    @classmethod
    def load(cls, path: str | PathLike[str], tick_ns: int = 1_000_000) -> Workload:
        """Reads a workload file, or text. Raises WorkloadRefused."""
        try:
            contents = Path(path).read_bytes()
            if contents.startswith(MAGIC.encode()):
                return cls.of_file(contents, tick_ns, fspath(path))
            return cls.read(contents.decode(), tick_ns, fspath(path))
        except (OSError, UnicodeError) as error:
            raise WorkloadRefused(
                f"{fspath(path)}: cannot be read: {error}; name another file"
            ) from None

    @classmethod
    def _copy_of(cls, raw: Any) -> Workload:
        lib = library()
        programs = {}
        for index in range(raw.program_count):
            program = raw.programs[index]
            size = program.count * lib.step.itemsize
            steps = np.frombuffer(lib.ffi.buffer(program.steps, size), lib.step).copy()
            programs[_text(program.name)] = steps
        channels = [raw.channels[index] for index in range(raw.channel_count)]
        texts = [_text(raw.texts[index]) for index in range(raw.text_count)]
        return cls(programs, channels, texts)

    def number(self, program: str | int) -> int:
        """Returns a program's index, which is its number in C. Raises WorkloadRefused."""
        if isinstance(program, int):
            return program
        try:
            return list(self.programs).index(program)
        except ValueError:
            names = ", ".join(self.programs)
            raise WorkloadRefused(f"unknown program {program}; choose from {names}") from None

    def c_structure(self) -> tuple[Any, list[Any]]:
        """Returns a struct simulator_workload, and the objects that must exist as long as the structure is used."""
        ffi = library().ffi
        keep_alive: list[Any] = []

        def keep(kind: str, value: Any) -> Any:
            keep_alive.append(ffi.new(kind, value))
            return keep_alive[-1]

        programs = keep("struct simulator_program[]", len(self.programs))
        for index, (name, steps) in enumerate(self.programs.items()):
            programs[index].name = keep("char[]", name.encode())
            keep_alive.append(steps)
            programs[index].steps = ffi.cast("struct workload_step *", steps.ctypes.data)
            programs[index].count = len(steps)
        raw = keep("struct simulator_workload *", None)
        raw.programs, raw.program_count = programs, len(self.programs)
        texts = [keep("char[]", text.encode()) for text in self.texts]
        raw.texts, raw.text_count = keep("char *[]", texts), len(texts)
        raw.channels = keep("uint64_t[]", list(self.channels))
        raw.channel_count = len(self.channels)
        return raw, keep_alive


def step_type() -> np.dtype[np.void]:
    """Returns numpy's type of a step: the layout of struct workload_step, 16 bytes."""
    return library().step


def step_kind(name: str) -> int:
    """Returns the number of a kind of step: "run", "sleep", "fork", …, as in enum workload_step_kind."""
    kinds: dict[str, int] = library().ffi.typeof("enum workload_step_kind").relements
    try:
        return kinds[f"STEP_{name.upper()}"]
    except KeyError:
        kind_names = ", ".join(sorted(kind.removeprefix("STEP_").lower() for kind in kinds))
        raise WorkloadRefused(f"unknown step {name}; choose from {kind_names}") from None


def _text(pointer: Any) -> str:
    text = library().ffi.string(pointer)
    assert isinstance(text, bytes)
    return text.decode()
