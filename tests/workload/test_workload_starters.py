# SPDX-License-Identifier: MIT
"""Tests workload files that specify the first process, and their random values."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.workload.model import AwaitAllChildren, Fork, Loop, Step, replace_await_all
from schedlab.workload.text import RandomNumbers, format_workload
from schedlab.workload.times import RandomTime, Time
from test_workload_files import TICK, complaint, program, read

WORKER = {"loop": 1, "run": 1}


def starter(folder: Path, content: object, **tasks: object) -> list[str]:
    """Returns the first process's steps after `mark begin`."""
    lines = program(read(folder, {"starter": content, "tasks": tasks or {"a": WORKER}}), "root")
    return lines[lines.index("mark begin") + 1 :]


# --- the first process's steps


def test_starter_runs_its_steps_and_waits_at_the_end(tmp_path: Path) -> None:
    content = {"priority": 3, "run": 5, "start": "a", "sleep": "2ticks"}
    file = read(tmp_path, {"starter": content, "tasks": {"a": {"instance": 3, **WORKER}}})
    assert program(file, "root") == [
        *("group root", "priority 3", "mark begin", "run 5000ns"),
        *("loop 3", "fork a", "end", "sleep 2ticks"),
        *("loop 4", "wait", "end", "mark end"),
    ]


@pytest.mark.parametrize(
    ("content", "steps"),
    [
        (
            {"start": {"task": "a", "run": 7, "call": 1}},
            ["run 7000ns", "sleep until 0ns", "fork a"],
        ),
        ({"fork": "a", "await": 1}, ["fork a", "wait"]),
        ({"call": 3}, ["loop 3", "sleep until 0ns", "end"]),
        ({"run": {"until": "3ticks"}}, ["run until 3000000ns"]),
        ({"sleep": {"until": 7}}, ["sleep until 7000ns"]),
        ({"give": "x", "take": "x"}, ["give of:x", "take of:x"]),
        ({"mark": 7}, ["mark note 7"]),
        ({"run": "0.5ticks"}, ["run 500000ns"]),
        ({"sleep": "0.5ticks"}, ["sleep 500000ns"]),
        ({"sleep": "2.0ticks"}, ["sleep 2ticks"]),
    ],
)
def test_its_events_become_steps(tmp_path: Path, content: object, steps: list[str]) -> None:
    assert starter(tmp_path, content)[: len(steps)] == steps


def test_user_marks_define_the_window(tmp_path: Path) -> None:
    phases = {"phases": {"wait": {"fork": "a", "sleep": 1}, "measure": {"mark": "begin", "run": 2}}}
    file = read(tmp_path, {"starter": phases, "tasks": {"a": {**WORKER, "mark": "end"}}})
    assert program(file, "root")[:4] == ["group root", "fork a", "sleep 1000ns", "mark begin"]
    assert program(file, "a") == ["group a", "run 1000ns", "mark end"]


def test_processes_give_themselves_what_their_task_has_and_no_more(tmp_path: Path) -> None:
    tasks = {"a": {"priority": 1, "tickets": 4, **WORKER}, "b": WORKER}
    file = read(tmp_path, {"starter": {"start1": "a", "start2": "b"}, "tasks": tasks})
    assert program(file, "a") == ["group a", "priority 1", "tickets 4", "run 1000ns"]
    assert program(file, "b") == ["group b", "run 1000ns"]
    assert program(file, "root")[:2] == ["group root", "mark begin"]


# --- how many children it waits for

A, ALL = Fork("a"), AwaitAllChildren()


def waits(*counts: int) -> list[Loop]:
    return [Loop(count, (Step("wait"),)) for count in counts]


def test_all_children_since_the_last_time_are_waited_for() -> None:
    assert replace_await_all((A, A, ALL, A, ALL, A)) == ((A, A, *waits(3), A, *waits(2), A), 1)


def test_children_of_loops_count_as_often_as_they_are_forked() -> None:
    forks = Loop(50, (A,))
    assert replace_await_all((forks, ALL))[0] == (forks, *waits(51))
    assert replace_await_all((Loop(4, (forks, ALL)), A)) == ((Loop(4, (forks, *waits(51))), A), 1)


def test_a_round_waits_for_what_the_round_before_has_left() -> None:
    body, left = replace_await_all((Loop(3, (A, ALL, A, A)),))
    assert body == (Loop(3, (A, *waits(4), A, A)),)
    assert left == 2
    assert replace_await_all((A, Loop(1, (ALL, A))))[0] == (A, Loop(1, (*waits(2), A)))


# --- random values


def test_numbers_are_those_of_splitmix64() -> None:
    """Compares the first numbers of the seed 1234567 with its authors' reference."""
    numbers = RandomNumbers(1234567)
    assert [numbers.next() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@pytest.mark.parametrize(
    ("time", "choices"),
    [
        (RandomTime(Time(0), Time(1, True), Time(10), end_counts=False), 100_000),
        (RandomTime(Time(0), Time(100_000), Time(10), end_counts=True), 10_001),
        (RandomTime(Time(5, True), Time(14, True), Time(1, True), end_counts=True), 10),
        (RandomTime(Time(7), Time(8), Time(10), end_counts=False), 1),
    ],
)
def test_so_many_times_can_be_drawn(time: RandomTime, choices: int) -> None:
    assert time.choices(TICK) == choices
    first = time.draw(lambda limit: 0, TICK)
    last = time.draw(lambda limit: limit - 1, TICK)
    assert first == time.first
    step = time.step.nanoseconds(TICK)
    span = last.nanoseconds(TICK) - first.nanoseconds(TICK)
    assert span == (choices - 1) * step
    assert last.in_ticks == time.in_full_ticks


def test_drawing_processes_have_separate_programs(tmp_path: Path) -> None:
    drawn = {"from": "1tick", "to": "3ticks", "step": "1tick"}
    task = {"instance": 2, "loop": 4, "run": {"below": 1000}, "sleep": drawn}
    file = read(tmp_path, {"starter": {"start": "a"}, "tasks": {"a": task}})
    numbers = RandomNumbers(7)
    for place in ("a@1", "a@2"):
        child = numbers.child()
        expected = ["group a"]
        for _ in range(4):
            expected += [f"run {child.below(10**6)}ns", f"sleep {1 + child.below(3)}ticks"]
        assert program(file, place, seed=7) == expected
    assert program(file, "root", seed=7)[2:4] == ["fork a@1", "fork a@2"]


def test_a_fork_draws_even_of_a_task_that_does_not(tmp_path: Path) -> None:
    content = {"loop": 3, "run": {"below": 1000}, "fork": "a"}
    lines = starter(tmp_path, content)
    numbers = RandomNumbers(1)
    for index in range(3):
        assert lines[2 * index : 2 * index + 2] == [f"run {numbers.below(10**6)}ns", "fork a"]
        numbers.child()


def test_tasks_that_draw_need_no_starter(tmp_path: Path) -> None:
    task = {"instance": 3, "loop": 1, "priority": 2, "run": {"to": 50}}
    file = read(tmp_path, {"tasks": {"a": task, "b": WORKER}})
    lines = program(file, "root")
    assert lines[3:5] == ["fork a@1", "priority 2 a@1"]
    assert lines.count("fork b") == 1
    assert format_workload(file, 1, TICK) != format_workload(file, 2, TICK)
    assert format_workload(file, 1, TICK) == format_workload(file, 1, TICK)


# --- refusals

STARTED = {"starter": {"fork": "a"}, "tasks": {"a": WORKER}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"starter": {}, "tasks": {"a": WORKER}}, "at least one event"),
        ({"starter": {"start": "b"}, "tasks": {"a": WORKER}}, "starter.start: "),
        ({"starter": {"instance": 2, "run": 1}, "tasks": {"a": WORKER}}, "starter.instance"),
        ({"starter": {"fork": "a"}, "tasks": {"a": {"delay": 1, **WORKER}}}, "tasks.a.delay"),
        ({**STARTED, "global": {"duration": 1}}, "global.duration: the `starter` ends the run"),
        ({"tasks": {"a": {"loop": 1, "start": "a"}}}, "at least one event"),
        ({"tasks": {"a": {"loop": 1, "await": "some"}}}, 'a.await: "some"'),
        ({"tasks": {"a": {"loop": 1, "mark": "middle"}}}, 'tasks.a.mark: "middle"'),
        ({"tasks": {"a": {"loop": 1, "exit": 256}}}, "tasks.a.exit: 256"),
        ({"tasks": {"a": {"run": {"to": 1}}}}, "a `loop` with an end for each random time"),
        ({"tasks": {"a": {"loop": 30_000_000, "run": {"to": 1}}}}, "fewer random times"),
        ({"tasks": {"a": {"run": {"to": 1, "below": 2}}}}, "with `below` instead of `to`"),
        ({"tasks": {"a": {"run": {"from": 2, "to": 1}}}}, "a.run.to: 1"),
        ({"tasks": {"a": {"run": {"to": 2, "step": 0}}}}, "run.step: 0: expected a step longer"),
        ({"tasks": {"a": {"run": {"til": 2}}}}, "tasks.a.run.til: unknown"),
    ],
    ids=str,
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: object, words: str) -> None:
    assert words in complaint(tmp_path, content)
