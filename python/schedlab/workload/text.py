# SPDX-License-Identifier: MIT
"""Converts a workload file for a machine, for one seed and tick length: to bytes, and to text (docs/simulator.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from schedlab.workload.binary_steps import (
    Assembly,
    Line,
    Lines,
    Rounds,
    iterate_lines,
    text_of_program,
)
from schedlab.workload.distributions import Constant, Distribution, Mixture, uniform_of
from schedlab.workload.model import (
    ALL_WORK,
    GIVEN,
    ROOT,
    AwaitAll,
    Device,
    Fork,
    Item,
    Loop,
    Meet,
    Starter,
    Step,
    Task,
    WorkloadFile,
    awaiting,
    draws_itself,
    everything,
)
from schedlab.workload.times import Drawn

FINISHED = "finished"
"""The channel that reports to the first process when processes other than its children have ended."""
_WORD = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_ROUNDS_FEW = 8
"""Above this number, all rounds of a loop are drawn together."""


class Numbers:
    """A process's random numbers, as in the schedlab kernel's programs (workloads/api/common.c).

    The generator is SplitMix64 (Steele, Lea, Flood, 2014). The next number of the parent determines
    the seed of a child.
    """

    def __init__(self, state: int) -> None:
        self.state = state & _WORD
        self.children = 0

    def next(self) -> int:
        self.state = (self.state + _GAMMA) & _WORD
        value = self.state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
        return value ^ (value >> 31)

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Returns the next `count` numbers, the same as `next` one by one."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)
        values: npt.NDArray[np.uint64] = steps + np.uint64(self.state)
        self.state = (self.state + count * _GAMMA) & _WORD
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        values ^= values >> np.uint64(31)
        return values

    def below(self, limit: int) -> int:
        """Returns a number from 0 to limit − 1."""
        return self.next() % limit

    def child(self) -> Numbers:
        """Returns the generator of the next child."""
        self.children += 1
        return Numbers(self.next() + self.children)


def text_of(file: WorkloadFile, seed: int, tick_ns: int, cpus: int = 1) -> str:
    """Returns a workload as text. `cpus`: the machine's CPUs, which determine arrivals if the file has a `load`."""
    channels = (f"channel {name} {count}\n" for name, count in file.channels.items())
    writer = _Writer(file, seed, tick_ns, file.gap_scale(tick_ns, cpus))
    return "".join((*channels, *(text_of_program(*program) for program in writer.programs())))


def bytes_of(file: WorkloadFile, seed: int, tick_ns: int, cpus: int = 1) -> bytes:
    """Returns the workload in the binary format of machines (abi/workload_file.h)."""
    assembly = Assembly(tick_ns)
    for name, count in file.channels.items():
        assembly.add(f"channel {name} {count}")
    programs = _Writer(file, seed, tick_ns, file.gap_scale(tick_ns, cpus)).programs()[::-1]
    while programs:  # frees each of possibly a million programs after use
        assembly.add_program(*programs.pop())
    return assembly.to_bytes()


def length(file: WorkloadFile) -> float:
    """Returns the approximate number of lines of the workload's text, including random draws; may be infinite."""
    drawing = file.drawing()
    lengths = {task.name: _Length(task.body, drawing) for task in file.tasks}
    if file.starter:
        return _Length(file.starter.body, drawing).lines(lengths)
    return sum(task.instances * lengths[task.name].lines(lengths) for task in file.tasks)


class _Length:
    """The number of lines of a process, including children that have separate lines."""

    def __init__(self, body: tuple[Item, ...], drawing: frozenset[str]) -> None:
        self.body = body
        self.drawing = drawing
        self.counting = False
        self.per_iteration: float | None = None

    def lines(self, others: dict[str, _Length]) -> float:
        if self.counting:  # the task forks itself
            return math.inf
        if self.per_iteration is None:
            self.counting = True
            self.per_iteration = self._count(self.body, _is_drawn(self.body, self.drawing), others)
            self.counting = False
        return self.per_iteration

    def _count(self, items: Iterable[Item], drawn: bool, others: dict[str, _Length]) -> float:
        total: float = 0
        for item in items:
            if isinstance(item, Loop):
                inner = self._count(item.body, drawn, others)
                unrolled = drawn and _is_unrolled(item)
                total += item.rounds * inner if unrolled else inner + 2
            elif isinstance(item, Fork) and item.task in self.drawing:
                total += 1 + others[item.task].lines(others)
            else:
                total += 1
        return total


def _is_drawn(body: tuple[Item, ...], drawing: frozenset[str]) -> bool:
    """True if two processes with this body behave differently."""
    forked = {item.task for item in everything(body) if isinstance(item, Fork)}
    return draws_itself(body) or bool(forked & drawing)


def _is_unrolled(loop: Loop) -> bool:
    """True if the rounds of a random process differ. A fork counts, because it draws the child's seed."""
    return draws_itself(loop.body) or any(isinstance(item, Fork) for item in everything(loop.body))


class _Writer:
    """Writes one workload."""

    def __init__(self, file: WorkloadFile, seed: int, tick_ns: int, gap_scale: float) -> None:
        self.file = file
        self.seed = seed
        self.tick_ns = tick_ns
        self.gap_scale = gap_scale
        self.tasks = {task.name: task for task in file.tasks}
        self.drawing = file.drawing()
        self.forked = file.forked
        self.attribute_names = file.attributes
        self.parties = file.parties()
        self.bodies = {task.name: awaiting(task.body)[0] for task in file.tasks}
        self.process_programs: list[tuple[str, list[Line | Rounds]]] = []
        """Programs for single processes."""
        self.work: dict[str, int] = {}
        """The total computing time of each program whose runtime is its total work, in nanoseconds."""

    def programs(self) -> list[tuple[str, list[Line | Rounds]]]:
        """Returns all programs with their names, the first process's first."""
        shared = [
            (task.name, list(self.program(task, task.name, None)))
            for task in self.file.tasks
            if task.name not in self.drawing
        ]
        starter = self.file.starter
        root = list(self.starter(starter) if starter else self.root())
        return [(ROOT, root), *shared, *self.process_programs]

    # --- the first process

    def root(self) -> Lines:
        """Starts the initial processes, lets the others arrive, and waits."""
        numbers = Numbers(self.seed)
        yield from self.preparations()
        yield _line("mark begin")
        for when, task, count in self.starts():
            if isinstance(task, Device):
                yield from [(f"deliver {task.channel} {{}}ns", when, "")] * count
            elif task.arrives:
                for _ in range(count):
                    yield ("arrive @ {}ns", when, self.program_of(task.name, numbers))
            elif task.name in self.drawing:
                for _ in range(count):
                    yield from self.started(task, numbers)
            else:
                yield from repeated(count, list(self.started(task, numbers)))
        if self.file.duration_ns is not None:
            yield ("arrive {}ns", self.file.duration_ns, "")
        elif any(task.arrives for task in self.file.tasks):
            yield _line("wait all")
            yield from self.others_ended()
        else:
            yield from repeated(sum(task.instances for task in self.file.tasks), [_line("wait")])
            yield from self.others_ended()
        yield _line("mark end")

    def preparations(self) -> Lines:
        """Creates task groups, and prevents tasks from delaying the first process.

        The first process gets the best of each attribute that tasks have. It arrives before
        reserved tasks, which could delay the starts of others.
        """
        yield _line(f"group {ROOT}")
        yield from self.groups()
        for name in self.attribute_names:
            best = GIVEN[name].best
            if best is not None:
                yield _line(GIVEN[name].line(name, best))
        if any(task.is_reserved for task in self.file.tasks):
            yield _line("arrive 0ns")

    def groups(self) -> Lines:
        """Creates the task groups, parents before their children."""
        for group in self.file.groups:
            yield from map(_line, group.lines())

    def starts(self) -> Iterator[tuple[int, Task | Device, int]]:
        """Yields time, task and number of instances, sorted by time and then by position in the
        file. Devices come last.
        """
        end = math.inf if self.file.duration_ns is None else self.file.duration_ns
        starts = [
            (when, place)
            for place, task in enumerate(self.file.tasks)
            for when in task.starts(self.seed, self.tick_ns, self.gap_scale)
            if not task.arrives or when < end
        ]
        sources: tuple[Task | Device, ...] = (*self.file.tasks, *self.file.devices)
        starts += [
            (when, len(self.file.tasks) + place)
            for place, device in enumerate(self.file.devices)
            for when in device.starts(self.seed, self.tick_ns)
            if when < end
        ]
        together: dict[tuple[int, int], int] = {}
        for start in sorted(starts):
            together[start] = together.get(start, 0) + 1
        for (when, place), count in together.items():
            yield when, sources[place], count

    def started(self, task: Task, numbers: Numbers) -> Lines:
        """Forks a process and sets its attributes, because it would otherwise inherit the root's."""
        name = self.program_of(task.name, numbers)
        yield ("fork @", None, name)
        yield from ((f"{words} @", None, name) for words in self.attributes(task, name))

    def others_ended(self) -> Lines:
        """Yields steps that wait until the processes forked by tasks have ended."""
        yield from repeated(sum(self.forked.values()), [_line(f"take {FINISHED}")])

    def starter(self, starter: Starter) -> Lines:
        """Yields the steps in the file, and then waits for all processes."""
        yield _line(f"group {ROOT}")
        yield from self.groups()
        yield from (_line(GIVEN[key].line(key, value)) for key, value in starter.attributes.items())
        if delay := starter.delay.nanoseconds(self.tick_ns):
            yield ("sleep until {}ns", delay, "")
        if not any(item == BEGIN for body in self.file.bodies for item in everything(body)):
            yield _line(BEGIN.words)
        ends = () if starter.ends_itself else (AwaitAll(),)
        numbers = Numbers(self.seed) if _is_drawn(starter.body, self.drawing) else None
        yield from self.lines(awaiting((*starter.body, *ends))[0], numbers)
        if not starter.ends_itself:
            yield from self.others_ended()
            yield _line("mark end")

    # --- tasks

    def program_of(self, name: str, numbers: Numbers | None) -> str:
        """Returns the program of a new process of a task; a separate one if it is random.
        `numbers`: its parent's generator.
        """
        child = numbers.child() if numbers else None
        if name not in self.drawing:
            return name
        program_name = f"{name}@{len(self.process_programs) + 1}"
        lines: list[Line | Rounds] = []
        self.process_programs.append((program_name, lines))  # the programs of its children follow
        lines += self.program(self.tasks[name], program_name, child)
        return program_name

    def program(self, task: Task, name: str, numbers: Numbers | None) -> Lines:
        """Yields the program of a task.

        A process forked by a task sets its attributes itself. If several tasks fork it at once,
        none of them could name it. With a starter, all processes do so, like programs of the
        schedlab kernel.
        """
        forked = task.name in self.forked
        drawn = self.drawn(task, numbers) if task.arrives else {}
        body = list(self.lines(self.bodies[task.name], numbers))
        if ALL_WORK in task.attributes.values():
            self.work[name] = _work(body)
        if task.arrives:
            yield from map(_line, self.attributes(task, name, drawn))
        yield _line(f"group {task.group}")
        if task.arrives:
            pass
        elif self.file.starter:
            for key, value in task.attributes.items():
                yield _line(self.attribute(key, name, value))
        elif forked:
            yield from map(_line, self.attributes(task, name))
        yield from body
        if forked and self.file.duration_ns is None:
            yield _line(f"give {FINISHED}")

    def drawn(self, task: Task, numbers: Numbers | None) -> dict[str, int]:
        """Returns the attributes drawn for a process. `numbers`: its generator."""
        if not numbers or not task.drawn:
            return {}
        uniform = uniform_of(numbers.below)
        return {key: value.draw(uniform) for key, value in task.drawn.items()}

    def attributes(
        self, task: Task, name: str, drawn: Mapping[str, int] | None = None
    ) -> list[str]:
        """Returns lines for all attributes that the file uses, for a process with the program `name`."""
        given = {**task.attributes, **(drawn or {})}
        return [
            self.attribute(key, name, given.get(key, GIVEN[key].standard))
            for key in self.attribute_names
        ]

    def attribute(self, key: str, name: str, value: int) -> str:
        return GIVEN[key].line(key, self.work[name] if value == ALL_WORK else value)

    # --- behaviour

    def lines(self, items: Iterable[Item], numbers: Numbers | None) -> Lines:
        """Yields the lines of items. `numbers`: the generator of a random process."""
        for item in items:
            if isinstance(item, Step):
                yield self.step(item, numbers)
            elif isinstance(item, Meet):
                yield (f"meet {item.channel} {{}}", max(self.parties[item.channel], 1), "")
            elif isinstance(item, Fork):
                yield ("fork @", None, self.program_of(item.task, numbers))
            elif isinstance(item, Loop) and numbers and _is_unrolled(item):
                yield from self.unrolled(item, numbers)
            elif isinstance(item, Loop):
                yield from repeated(item.rounds, list(self.lines(item.body, numbers)))

    def unrolled(self, loop: Loop, numbers: Numbers) -> Lines:
        """Yields the rounds of a loop one by one; together if each draw uses one number."""
        rounds = int(loop.rounds)
        steps = [item for item in loop.body if isinstance(item, Step)]
        places = [place for place, step in enumerate(steps) if _draws(step)]
        if (
            rounds <= _ROUNDS_FEW
            or len(steps) < len(loop.body)
            or not all(_draws_one_number(step) for step in steps)
        ):
            for _ in range(rounds):
                yield from self.lines(loop.body, numbers)
            return
        drawn = numbers.take(rounds * len(places)).reshape(rounds, len(places))
        lines = tuple(self.step(step, Numbers(0)) for step in steps)
        values = np.zeros((rounds, len(steps)), np.uint64)
        values += np.array([number or 0 for _, number, _ in lines], np.uint64)
        for column, place in enumerate(places):
            time = steps[place].time
            assert isinstance(time, Drawn | Distribution)
            in_ticks = lines[place][0].endswith("ticks")
            unit = np.uint64(self.tick_ns if in_ticks else 1)
            values[:, place] = time.draws(drawn[:, column], self.tick_ns) // unit
        yield Rounds(lines, values)

    def step(self, step: Step, numbers: Numbers | None) -> Line:
        """Returns the line of a step. A sleep of whole ticks ends at a tick; see docs/simulator.md."""
        time = step.time
        if isinstance(time, Drawn | Distribution):
            assert numbers is not None
            time = time.draw(numbers.below, self.tick_ns)
        if time is None:
            return _line(f"{step.words} {step.after}".strip())
        if step.words == "sleep" and time.in_full_ticks:
            return ("sleep {}ticks", int(time.number), "")
        words = f"{step.words} {{}}ns {step.after}" if step.after else f"{step.words} {{}}ns"
        return (words, time.nanoseconds(self.tick_ns), "")


BEGIN = Step("mark begin")


@cache
def _line(words: str) -> Line:
    return (words, None, "")


def _draws(step: Step) -> bool:
    return isinstance(step.time, Drawn | Distribution)


def _draws_one_number(step: Step) -> bool:
    return not isinstance(step.time, Constant | Mixture)


def _work(lines: Lines) -> int:
    """Returns the total computing time of these lines, in nanoseconds."""
    sums, rounds = [0], [1]
    for words, number, _ in iterate_lines(lines):
        if words == "loop {}":
            sums.append(0)
            rounds.append(number or 0)
        elif words == "end":
            inner = sums.pop() * rounds.pop()
            sums[-1] += inner
        elif words == "run {}ns":
            sums[-1] += number or 0
    return min(sums[0], GIVEN["runtime"].most)


def repeated(count: float, lines: list[Line | Rounds]) -> Lines:
    if count == 1:
        yield from lines
    elif lines and (math.isinf(count) or count):
        yield _line("loop") if math.isinf(count) else ("loop {}", int(count), "")
        yield from lines
        yield _line("end")
