# SPDX-License-Identifier: MIT
"""Converts a workload file for a machine: to text (docs/simulator.md), or to bytes.

Random times are drawn for a seed, and ticks get a length.
"""

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
    RepeatedLines,
    expand_lines,
    format_program,
)
from schedlab.workload.distributions import Constant, Distribution, Mixture, make_uniform
from schedlab.workload.model import (
    ALL_WORK,
    FILE_ATTRIBUTES,
    ROOT_PROGRAM,
    AwaitAllChildren,
    Device,
    Fork,
    Item,
    Loop,
    MeetAtBarrier,
    Starter,
    Step,
    Task,
    WorkloadFile,
    all_items,
    has_random_times,
    replace_await_all,
)
from schedlab.workload.times import RandomTime

FINISHED_CHANNEL = "finished"
"""Channel that tells the first process that processes other than its children have ended."""
_WORD = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_UNROLLED_ROUNDS_MAX = 8
"""The random numbers of loops with more rounds than this are drawn together."""


class RandomNumbers:
    """The random numbers of a process, as in the schedlab kernel's programs
    (workloads/api/common.c).

    The generator is SplitMix64 (Steele, Lea, Flood, 2014). A child's seed is the next number of its
    parent.
    """

    def __init__(self, state: int) -> None:
        self.state = state & _WORD
        self.children = 0

    def next(self) -> int:
        """Returns the next random number, from 0 to 2^64 − 1."""
        self.state = (self.state + _GAMMA) & _WORD
        value = self.state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
        return value ^ (value >> 31)

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Returns the next `count` random numbers, as `next` would one by one."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)
        values: npt.NDArray[np.uint64] = steps + np.uint64(self.state)
        self.state = (self.state + count * _GAMMA) & _WORD
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        values ^= values >> np.uint64(31)
        return values

    def below(self, limit: int) -> int:
        """Returns a random number from 0 to limit − 1."""
        return self.next() % limit

    def child(self) -> RandomNumbers:
        """Returns the generator of the next child."""
        self.children += 1
        return RandomNumbers(self.next() + self.children)


def format_workload(file: WorkloadFile, seed: int, tick_ns: int, cpus: int = 1) -> str:
    """Returns a workload in the text format.

    `cpus`: the machine's number of CPUs; determines the gaps if the file has a `load`.
    """
    channels = (f"channel {name} {count}\n" for name, count in file.channels.items())
    writer = _Writer(file, seed, tick_ns, file.gap_scale(tick_ns, cpus))
    return "".join((*channels, *(format_program(*program) for program in writer.programs())))


def encode_workload(file: WorkloadFile, seed: int, tick_ns: int, cpus: int = 1) -> bytes:
    """Returns the workload in the binary format of machines (abi/workload_file.h)."""
    assembly = Assembly(tick_ns)
    for name, count in file.channels.items():
        assembly.add(f"channel {name} {count}")
    programs = _Writer(file, seed, tick_ns, file.gap_scale(tick_ns, cpus)).programs()[::-1]
    while programs:  # the text of each of up to a million programs is freed after its conversion
        assembly.add_program(*programs.pop())
    return assembly.to_bytes()


def count_lines(file: WorkloadFile) -> float:
    """Returns about how many lines the workload's text has; may be infinite."""
    drawing = file.drawing()
    lengths = {task.name: _LineCount(task.body, drawing) for task in file.tasks}
    if file.starter:
        return _LineCount(file.starter.body, drawing).lines(lengths)
    return sum(task.instances * lengths[task.name].lines(lengths) for task in file.tasks)


class _LineCount:
    """The number of lines of a process, including children whose programs are separate."""

    def __init__(self, body: tuple[Item, ...], drawing: frozenset[str]) -> None:
        self.body = body
        self.drawing = drawing
        self.counting = False
        self.per_iteration: float | None = None

    def lines(self, others: dict[str, _LineCount]) -> float:
        """Returns the number of lines; infinite if the task forks itself."""
        if self.counting:  # the task forks itself
            return math.inf
        if self.per_iteration is None:
            self.counting = True
            self.per_iteration = self._count(self.body, _is_drawn(self.body, self.drawing), others)
            self.counting = False
        return self.per_iteration

    def _count(self, items: Iterable[Item], drawn: bool, others: dict[str, _LineCount]) -> float:
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
    """Returns whether processes with this body differ at random."""
    forked = {item.task for item in all_items(body) if isinstance(item, Fork)}
    return has_random_times(body) or bool(forked & drawing)


def _is_unrolled(loop: Loop) -> bool:
    """Returns whether a loop's rounds must be written one by one, because they differ at random.

    A fork counts, because it draws the child's seed.
    """
    return has_random_times(loop.body) or any(
        isinstance(item, Fork) for item in all_items(loop.body)
    )


class _Writer:
    """Writes the programs of one workload for one seed."""

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
        self.bodies = {task.name: replace_await_all(task.body)[0] for task in file.tasks}
        self.process_programs: list[tuple[str, list[Line | RepeatedLines]]] = []
        """Programs for single processes."""
        self.work: dict[str, int] = {}
        """The total computing time of each program whose runtime is its total work, in nanoseconds."""

    def programs(self) -> list[tuple[str, list[Line | RepeatedLines]]]:
        """Returns all programs by name; the first process's is the first."""
        shared = [
            (task.name, list(self.program(task, task.name, None)))
            for task in self.file.tasks
            if task.name not in self.drawing
        ]
        starter = self.file.starter
        root = list(self.starter(starter) if starter else self.root())
        return [(ROOT_PROGRAM, root), *shared, *self.process_programs]

    # --- the first process

    def root(self) -> Lines:
        """Yields the first process's program: it starts processes, lets others arrive, and waits."""
        numbers = RandomNumbers(self.seed)
        yield from self.preparations()
        yield _line_without_number("mark begin")
        for when, task, count in self.starts():
            if isinstance(task, Device):
                yield from [(f"deliver {task.channel} {{}}ns", when, "")] * count
            elif task.arrives:
                for _ in range(count):
                    yield ("arrive @ {}ns", when, self.program_of(task.name, numbers))
            elif task.name in self.drawing:
                for _ in range(count):
                    yield from self.fork_lines(task, numbers)
            else:
                yield from loop_lines(count, list(self.fork_lines(task, numbers)))
        if self.file.duration_ns is not None:
            yield ("arrive {}ns", self.file.duration_ns, "")
        elif any(task.arrives for task in self.file.tasks):
            yield _line_without_number("wait all")
            yield from self.others_ended()
        else:
            yield from loop_lines(
                sum(task.instances for task in self.file.tasks), [_line_without_number("wait")]
            )
            yield from self.others_ended()
        yield _line_without_number("mark end")

    def preparations(self) -> Lines:
        """Yields steps before the start: task groups, and the best attributes for the first
        process.

        With them, no task delays the first process. It arrives before tasks with a guaranteed
        runtime, which could delay the starts of others.
        """
        yield _line_without_number(f"group {ROOT_PROGRAM}")
        yield from self.groups()
        for name in self.attribute_names:
            best = FILE_ATTRIBUTES[name].best
            if best is not None:
                yield _line_without_number(FILE_ATTRIBUTES[name].line(name, best))
        if any(task.is_reserved for task in self.file.tasks):
            yield _line_without_number("arrive 0ns")

    def groups(self) -> Lines:
        """Creates the task groups, parents before their children."""
        for group in self.file.groups:
            yield from map(_line_without_number, group.lines())

    def starts(self) -> Iterator[tuple[int, Task | Device, int]]:
        """Yields time, task and number of instances, sorted by time and then as in the file; devices last."""
        end = math.inf if self.file.duration_ns is None else self.file.duration_ns
        starts = [
            (when, index)
            for index, task in enumerate(self.file.tasks)
            for when in task.starts(self.seed, self.tick_ns, self.gap_scale)
            if not task.arrives or when < end
        ]
        sources: tuple[Task | Device, ...] = (*self.file.tasks, *self.file.devices)
        starts += [
            (when, len(self.file.tasks) + index)
            for index, device in enumerate(self.file.devices)
            for when in device.starts(self.seed, self.tick_ns)
            if when < end
        ]
        together: dict[tuple[int, int], int] = {}
        for start in sorted(starts):
            together[start] = together.get(start, 0) + 1
        for (when, place), count in together.items():
            yield when, sources[place], count

    def fork_lines(self, task: Task, numbers: RandomNumbers) -> Lines:
        """Yields the fork of a process and its attributes, which would otherwise be those of the
        first process.
        """
        name = self.program_of(task.name, numbers)
        yield ("fork @", None, name)
        yield from ((f"{words} @", None, name) for words in self.attributes(task, name))

    def others_ended(self) -> Lines:
        """Yields steps that wait until all processes forked by tasks have ended."""
        yield from loop_lines(
            sum(self.forked.values()), [_line_without_number(f"take {FINISHED_CHANNEL}")]
        )

    def starter(self, starter: Starter) -> Lines:
        """Yields the starter's steps, and then waits for all processes."""
        yield _line_without_number(f"group {ROOT_PROGRAM}")
        yield from self.groups()
        yield from (
            _line_without_number(FILE_ATTRIBUTES[key].line(key, value))
            for key, value in starter.attributes.items()
        )
        if delay := starter.delay.nanoseconds(self.tick_ns):
            yield ("sleep until {}ns", delay, "")
        if not any(item == BEGIN for body in self.file.bodies for item in all_items(body)):
            yield _line_without_number(BEGIN.words)
        ends = () if starter.ends_itself else (AwaitAllChildren(),)
        numbers = RandomNumbers(self.seed) if _is_drawn(starter.body, self.drawing) else None
        yield from self.lines(replace_await_all((*starter.body, *ends))[0], numbers)
        if not starter.ends_itself:
            yield from self.others_ended()
            yield _line_without_number("mark end")

    # --- tasks

    def program_of(self, name: str, numbers: RandomNumbers | None) -> str:
        """Returns the program for a new process of a task: its own one if it is random.

        `numbers`: the parent's random numbers.
        """
        child = numbers.child() if numbers else None
        if name not in self.drawing:
            return name
        program_name = f"{name}@{len(self.process_programs) + 1}"
        lines: list[Line | RepeatedLines] = []
        self.process_programs.append(
            (program_name, lines)
        )  # the programs of its children come after its own
        lines += self.program(self.tasks[name], program_name, child)
        return program_name

    def program(self, task: Task, name: str, numbers: RandomNumbers | None) -> Lines:
        """Yields the program of a task.

        A process forked by a task sets its attributes itself, because its parent cannot name it if
        several processes run the program. With a starter, all processes do, like programs of the
        schedlab kernel.
        """
        forked = task.name in self.forked
        drawn = self.drawn(task, numbers) if task.arrives else {}
        body = list(self.lines(self.bodies[task.name], numbers))
        if ALL_WORK in task.attributes.values():
            self.work[name] = _work_ns(body)
        if task.arrives:
            yield from map(_line_without_number, self.attributes(task, name, drawn))
        yield _line_without_number(f"group {task.group}")
        if task.arrives:
            pass
        elif self.file.starter:
            for key, value in task.attributes.items():
                yield _line_without_number(self.attribute(key, name, value))
        elif forked:
            yield from map(_line_without_number, self.attributes(task, name))
        yield from body
        if forked and self.file.duration_ns is None:
            yield _line_without_number(f"give {FINISHED_CHANNEL}")

    def drawn(self, task: Task, numbers: RandomNumbers | None) -> dict[str, int]:
        """Returns the attributes that are random for a process. `numbers`: its random numbers."""
        if not numbers or not task.drawn:
            return {}
        uniform = make_uniform(numbers.below)
        return {key: value.draw(uniform) for key, value in task.drawn.items()}

    def attributes(
        self, task: Task, name: str, drawn: Mapping[str, int] | None = None
    ) -> list[str]:
        """Returns lines for all attributes that the file uses, for a process that runs the program `name`."""
        attributes = {**task.attributes, **(drawn or {})}
        return [
            self.attribute(key, name, attributes.get(key, FILE_ATTRIBUTES[key].standard))
            for key in self.attribute_names
        ]

    def attribute(self, key: str, name: str, value: int) -> str:
        return FILE_ATTRIBUTES[key].line(key, self.work[name] if value == ALL_WORK else value)

    # --- behaviour

    def lines(self, items: Iterable[Item], numbers: RandomNumbers | None) -> Lines:
        """Yields the lines of items. `numbers`: the random numbers of a process that draws any."""
        for item in items:
            if isinstance(item, Step):
                yield self.step(item, numbers)
            elif isinstance(item, MeetAtBarrier):
                yield (f"meet {item.channel} {{}}", max(self.parties[item.channel], 1), "")
            elif isinstance(item, Fork):
                yield ("fork @", None, self.program_of(item.task, numbers))
            elif isinstance(item, Loop) and numbers and _is_unrolled(item):
                yield from self.unrolled(item, numbers)
            elif isinstance(item, Loop):
                yield from loop_lines(item.rounds, list(self.lines(item.body, numbers)))

    def unrolled(self, loop: Loop, numbers: RandomNumbers) -> Lines:
        """Yields a loop's rounds one by one, or all at once if each draw uses one random number."""
        rounds = int(loop.rounds)
        steps = [item for item in loop.body if isinstance(item, Step)]
        places = [index for index, step in enumerate(steps) if _has_random_time(step)]
        if (
            rounds <= _UNROLLED_ROUNDS_MAX
            or len(steps) < len(loop.body)
            or not all(_draws_one_number(step) for step in steps)
        ):
            for _ in range(rounds):
                yield from self.lines(loop.body, numbers)
            return
        drawn = numbers.take(rounds * len(places)).reshape(rounds, len(places))
        lines = tuple(self.step(step, RandomNumbers(0)) for step in steps)
        values = np.zeros((rounds, len(steps)), np.uint64)
        values += np.array([number or 0 for _, number, _ in lines], np.uint64)
        for column, place in enumerate(places):
            time = steps[place].time
            assert isinstance(time, RandomTime | Distribution)
            in_ticks = lines[place][0].endswith("ticks")
            unit = np.uint64(self.tick_ns if in_ticks else 1)
            values[:, place] = time.draws(drawn[:, column], self.tick_ns) // unit
        yield RepeatedLines(lines, values)

    def step(self, step: Step, numbers: RandomNumbers | None) -> Line:
        """Returns the line of a step.

        A sleep of whole ticks ends at a tick (docs/simulator.md).
        """
        time = step.time
        if isinstance(time, RandomTime | Distribution):
            assert numbers is not None
            time = time.draw(numbers.below, self.tick_ns)
        if time is None:
            return _line_without_number(f"{step.words} {step.after}".strip())
        if step.words == "sleep" and time.in_full_ticks:
            return ("sleep {}ticks", int(time.number), "")
        words = f"{step.words} {{}}ns {step.after}" if step.after else f"{step.words} {{}}ns"
        return (words, time.nanoseconds(self.tick_ns), "")


BEGIN = Step("mark begin")


@cache
def _line_without_number(words: str) -> Line:
    return (words, None, "")


def _has_random_time(step: Step) -> bool:
    return isinstance(step.time, RandomTime | Distribution)


def _draws_one_number(step: Step) -> bool:
    return not isinstance(step.time, Constant | Mixture)


def _work_ns(lines: Lines) -> int:
    """Returns the computing time (ns) in these lines."""
    sums, rounds = [0], [1]
    for words, number, _ in expand_lines(lines):
        if words == "loop {}":
            sums.append(0)
            rounds.append(number or 0)
        elif words == "end":
            inner = sums.pop() * rounds.pop()
            sums[-1] += inner
        elif words == "run {}ns":
            sums[-1] += number or 0
    return min(sums[0], FILE_ATTRIBUTES["runtime"].most)


def loop_lines(count: float, lines: list[Line | RepeatedLines]) -> Lines:
    if count == 1:
        yield from lines
    elif lines and (math.isinf(count) or count):
        yield _line_without_number("loop") if math.isinf(count) else ("loop {}", int(count), "")
        yield from lines
        yield _line_without_number("end")
