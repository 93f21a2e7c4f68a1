# SPDX-License-Identifier: MIT
"""Tests workload files: their translation for the simulator, and the messages for wrong files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.files.json_lines import JsonError, Object, parse
from schedlab.errors import WrongUsage
from schedlab.workload import tasks, workload_files
from schedlab.workload.model import ATTRIBUTES, WorkloadFile, default_limit_ns
from schedlab.workload.palette import read_palette
from schedlab.workload.text import format_workload

FILES = sorted((ROOT / "workloads" / "files").rglob("*.json"))
TICK = 1_000_000


def read(folder: Path, content: object) -> WorkloadFile:
    """Reads a file with this content, given as text or as an object to write as JSON."""
    path = folder / "w.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return workload_files.read_workload_file(path)


def program(file: WorkloadFile, name: str, seed: int = 1) -> list[str]:
    """Returns the steps of one program, without their indents."""
    programs = format_workload(file, seed, TICK).split("program ")[1:]
    (program_lines,) = (
        program_text.split("\n") for program_text in programs if program_text.split("\n")[0] == name
    )
    return [line.strip() for line in program_lines[1:] if line.strip()]


def behaviour(folder: Path, task: object) -> list[str]:
    """Returns the steps of one task, without its group."""
    file = read(folder, {"tasks": {"a": task, "b": {"instance": 0, "loop": 1, "run": 1}}})
    return program(file, "a")[1:]


def complaint(folder: Path, content: object) -> str:
    """Returns the message for a wrong file, without its directory."""
    with pytest.raises(WrongUsage) as error:
        read(folder, content)
    return str(error.value).replace(f"{folder}/", "")


# --- translation

RESERVED = {"dl-runtime": 3, "dl-period": 5}
LONG = {"mean": "999999999s", "distribution": "uniform"}


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        ({"loop": 1, "run": 10, "sleep": 20}, ["run 10000ns", "sleep 20000ns"]),
        ({"loop": 1, "run0": 1, "run1": 2}, ["run 1000ns", "run 2000ns"]),
        ({"loop": 1, "run": "3ms", "sleep": "5ticks"}, ["run 3000000ns", "sleep 5ticks"]),
        ({"loop": 3, "run": 1}, ["loop 3", "run 1000ns", "end"]),
        ({"run": 1}, ["loop", "run 1000ns", "end"]),
        ({"loop": 1, "yield": "", "run": 1}, ["yield", "run 1000ns"]),
        ({"loop": 1, "lock": "m", "unlock": "m"}, ["lock lock:m", "give lock:m"]),
        (
            {"loop": 1, "wait": {"ref": "c", "mutex": "m"}},
            ["take cond:c releasing lock:m", "lock lock:m"],
        ),
        ({"loop": 1, "signal": "c", "broad": "c"}, ["give cond:c waiting", "give cond:c all"]),
        (
            {"loop": 1, "sync": {"ref": "c", "mutex": "m"}},
            [
                *("lock lock:m", "give cond:c waiting"),
                *("take cond:c releasing lock:m", "lock lock:m", "give lock:m"),
            ],
        ),
        ({"loop": 1, "suspend": "", "resume": "b"}, ["take task:a", "give task:b all"]),
        ({"loop": 1, "fork": "b"}, ["fork b"]),
        ({"loop": 1, "offline": 3, "online2": 3}, ["offline 3", "online 3"]),
        (
            {
                "loop": 1,
                "set": {"task": "b", "cpus": [0, 2], "nice": 3},
                "set2": {"task": "b", "nice": 0},
            },
            ["nice 3 b", "cpus 0,2 b", "nice 0 b"],
        ),
        (
            {"loop": 2, "run": 1, "timer": {"ref": "unique", "period": 10}},
            ["loop 2", "run 1000ns", "timer 0 10000ns", "end"],
        ),
        (
            {
                "loop": 1,
                "timer0": {"ref": "unique0", "period": 10, "mode": "absolute"},
                "timer1": {"ref": "mine", "period": 20, "mode": "relative"},
                "timer2": {"ref": "unique0", "period": 30},
            },
            ["timer 0 10000ns absolute", "timer time:mine 20000ns", "timer 0 30000ns"],
        ),
        (
            {**RESERVED, "loop": 2, "run": 1, "timer": {"ref": "unique", "period": 10}},
            [
                *("job 0 0ns absolute", "loop 2", "run 1000ns", "job 0 10000ns"),
                *("timer 0 10000ns", "end", "job none"),
            ],
        ),
        (
            {**RESERVED, "timer": {"ref": "unique", "period": 9, "mode": "absolute"}, "run": 1},
            ["loop", "job 0 9000ns absolute", "timer 0 9000ns absolute", "run 1000ns", "end"],
        ),
        ({**RESERVED, "loop": 1, "run": 1}, ["job 0 0ns absolute", "run 1000ns"]),
        ({"dl-period": 5, "loop": 1, "run": 1}, ["run 1000ns"]),
        (
            {"dl-period": 5, "loop": 1, "phases": {"a": {"dl-runtime": 3, "run": 1}}},
            ["job 0 0ns absolute", "runtime 3000ns", "run 1000ns"],
        ),
        ({"loop": 2, "instance": 3, "barrier": "x"}, ["loop 2", "meet meet:x 3", "end"]),
    ],
)
def test_events_become_steps(tmp_path: Path, task: object, steps: list[str]) -> None:
    assert behaviour(tmp_path, task) == steps


def test_barriers_count_all_that_come(tmp_path: Path) -> None:
    tasks = {
        "a": {"loop": 1, "instance": 4, "barrier": "x"},
        "b": {"loop": 2, "run": {"from": 1, "to": 9}, "barrier1": "x", "barrier2": "y"},
        "c": {"instance": 0, "barrier": "y"},
    }
    file = read(tmp_path, {"tasks": tasks})
    assert program(file, "a")[1:] == ["meet meet:x 5"]
    assert format_workload(file, 1, 1_000_000).count("meet meet:y 1\n") == 3
    starter = {"start": "a", "barrier": "x", "start2": "b"}
    file = read(tmp_path, {"starter": starter, "tasks": tasks})
    assert program(file, "a")[1:] == ["meet meet:x 6"]


def test_phases_come_one_after_another_with_their_loops_and_attributes(tmp_path: Path) -> None:
    task = {
        "loop": 2,
        "phases": {"x": {"loop": 3, "run": 1}, "y": {"priority": 7, "sleep": 2}},
    }
    assert behaviour(tmp_path, task) == [
        *("loop 2", "loop 3", "run 1000ns", "end"),
        *("priority 7", "sleep 2000ns", "end"),
    ]


def test_process_gets_all_its_work(tmp_path: Path) -> None:
    body = {"phases": {"a": {"loop": 3, "run": 10, "sleep": 5}, "b": {"run": 1, "call": 2}}}
    task_data = {"loop": 2, "dl-runtime": "work", **body}
    other = {"nice": -1, "loop": 1, "run": 7}
    file = read(tmp_path, {"tasks": {"told": task_data, "other": other}})
    assert {"runtime 62000ns told", "runtime 0ns other", "nice -1 other"} <= {
        *program(file, "root")
    }
    drawn = {"loop": 4, "run": {"distribution": "exponential", "mean": 100}}
    gaps = {"times": [0, 5]}
    file = read(tmp_path, {"tasks": {"job": {**drawn, "dl-runtime": "work", "arrivals": gaps}}})
    for program_name in ("job@1", "job@2"):
        first, *others = program(file, program_name)
        runs = [int(line[4:-2]) for line in others if line.startswith("run ")]
        assert len(runs) == 4 and first == f"runtime {sum(runs)}ns"


def test_the_root_starts_all_in_order_and_waits(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        {
            "tasks": {
                "late": {"loop": 1, "delay": 5000, "run": 1},
                "many": {"loop": 1, "instance": 3, "run": 1},
            }
        },
    )
    assert program(file, "root") == [
        *("group root", "mark begin"),
        *("loop 3", "fork many", "end"),
        "arrive late 5000000ns",
        *("wait all", "mark end"),
    ]


def test_the_limit_leaves_room_for_a_long_duration(tmp_path: Path) -> None:
    """Formerly a run of a minute reached the limit of a minute when it was complete."""
    tasks = {"a": {"run": 1}}
    files = [
        read(tmp_path, {"global": {"duration": duration}, "tasks": tasks})
        for duration in (2, 60, -1)
    ]
    assert [default_limit_ns(file) for file in (*files, None)] == [60e9, 90e9, 60e9, 60e9]


def test_the_root_has_the_best_of_what_is_given_and_its_children_what_is_theirs(
    tmp_path: Path,
) -> None:
    tasks = {"a": {"tickets": 30, "run": 1}, "b": {"run": 1}}
    root = program(read(tmp_path, {"tasks": tasks}), "root")
    assert root[:3] == ["group root", "tickets 1000000", "mark begin"]
    assert root[3:7] == ["fork a", "tickets 30 a", "fork b", "tickets 1 b"]


GROUPS = {"/": {"quota": "90ms"}, "/users/ann": {"weight": 300, "quota": 5000, "period": "20ms"}}


def test_groups_of_tasks_have_numbers_parents_before_their_children(tmp_path: Path) -> None:
    tasks = {
        "a": {"taskgroup": "/users/ann", "phases": {"p": {"taskgroup": "/x/y", "run": 1}}},
        "b": {"run": 1},
    }
    file = read(tmp_path, {"groups": GROUPS, "tasks": tasks})
    root = program(file, "root")
    assert root[:9] == [
        *("group root", "setgroup 0 quota 90000000ns", "setgroup 1 parent 0"),
        *("setgroup 2 parent 1", "setgroup 2 weight 300"),
        *("setgroup 2 period 20000000ns", "setgroup 2 quota 5000000ns"),
        *("setgroup 3 parent 0", "setgroup 4 parent 3"),
    ]
    assert root[9:14] == ["mark begin", "fork a", "taskgroup 2 a", "fork b", "taskgroup 0 b"]
    assert program(file, "a")[1:4] == ["loop", "taskgroup 4", "run 1000ns"]


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ([], "groups"),
        ({"users": {}}, "groups.users"),
        ({"/": {"weight": 3}}, "the root has no siblings"),
        ({"/a": {"weight": 0}}, "groups./a.weight"),
        ({"/a": {"period": "5ms"}}, "`quota`"),
        ({"/a": {"quota": 1000, "period": "2s"}}, "groups./a.period"),
        ({f"/a{i}": {} for i in range(32)}, "at most 31 groups"),
        ({"/a": {"shares": 3}}, "groups./a.shares: unknown"),
    ],
    ids=str,
)
def test_wrong_groups_of_tasks_are_refused(tmp_path: Path, groups: object, word: str) -> None:
    assert word in complaint(tmp_path, {"groups": groups, "tasks": {"a": {"run": 1}}})


def test_the_run_lasts_until_forked_tasks_have_ended(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        {
            "tasks": {
                "a": {"instance": 2, "loop": 3, "phases": {"p": {"loop": 5, "fork": "b"}}},
                "b": {"instance": 1, "loop": 1, "priority": 2, "run": 1},
            }
        },
    )
    root = program(file, "root")
    assert root[-7:] == [
        *("loop 3", "wait", "end"),
        *("loop 31", "take finished", "end"),
        "mark end",
    ]
    assert program(file, "b") == ["group b", "priority 2", "run 1000ns", "give finished"]
    assert program(file, "a")[-1] == "end"
    assert file.processes() == 4096


def test_room_is_made_for_all_processes(tmp_path: Path) -> None:
    many = read(tmp_path, {"tasks": {"a": {"instance": 9000, "loop": 1, "run": 1}}})
    assert many.processes() == 9002
    endless = read(tmp_path, {"tasks": {"a": {"loop": 1, "run": 1, "fork": "a"}}})
    assert endless.processes() == 65536


def arrivals(file: WorkloadFile, seed: int) -> list[int]:
    """Returns when processes are started."""
    text = format_workload(file, seed, TICK)
    return [int(when) for when in re.findall(r"arrive \S+ (\d+)ns", text)]


@pytest.mark.parametrize(("distribution", "deviation"), [("exponential", 1), ("uniform", 3**-0.5)])
def test_arrivals_are_drawn_from_the_seed(
    tmp_path: Path, distribution: str, deviation: float
) -> None:
    count, mean = 10_000, 2_000
    gaps = {"distribution": distribution, "mean": mean}
    task = {"instance": count, "loop": 1, "delay": 7, "arrivals": gaps, "run": 1}
    file = read(tmp_path, {"tasks": {"a": task}})
    arrival_times = arrivals(file, 1)
    assert arrival_times == arrivals(file, 1) == sorted(arrival_times)
    assert arrival_times != arrivals(file, 2)
    assert len(arrival_times) == count
    drawn = [
        after - before for before, after in zip([7000, *arrival_times], arrival_times, strict=False)
    ]
    mean_ns = mean * 1000
    assert sum(drawn) / count == pytest.approx(mean_ns, rel=4 * deviation / count**0.5)
    squares = sum((gap - mean_ns) ** 2 for gap in drawn) / count
    assert squares**0.5 == pytest.approx(mean_ns * deviation, rel=0.05)
    if distribution == "uniform":
        assert max(drawn) <= 2 * mean_ns


def test_times_in_ticks_follow_the_tick(tmp_path: Path) -> None:
    file = read(tmp_path, {"tasks": {"a": {"loop": 1, "delay": "3ticks", "run": 1}}})
    assert "arrive a 30000ns" in format_workload(file, 1, 10_000)


def test_attributes_are_those_of_the_policies() -> None:
    header = (ROOT / "policies" / "policy.h").read_text()
    numbers = dict(re.findall(r"#define ([A-Z_]+) +\(?(-?\d+)\)?(?: |$)", header, re.MULTILINE))
    rows = re.findall(
        r"EACH\([A-Z]+, (\w+), \w+, (\w+), (\w+), (\w+)(?: - 1)?, \w+\)",
        (ROOT / "policies" / "support" / "attributes.h").read_text(),
    )
    documented_ranges = {
        name: [int(numbers.get(word, word)) for word in (lowest, first, highest)]
        for name, lowest, first, highest in rows
    }
    documented_ranges["taskgroup"] = [0, 0, documented_ranges.pop("group")[-1] - 1]
    assert documented_ranges == {
        name: [attribute.least, attribute.standard, attribute.most]
        for name, attribute in ATTRIBUTES.items()
    }


def test_the_documentation_names_every_key() -> None:
    page = (ROOT / "docs" / "workload-files.md").read_text()
    keys = {*tasks.IGNORED, *tasks.SCHEDULING_CLASSES, *workload_files.KEYS_WITHOUT_EFFECT}
    keys |= {*tasks.TASK_KEYS, *tasks.PHASE_KEYS}
    assert not [key for key in keys if f"`{key}`" not in page]


# --- refusals


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ({"run": -1}, "w.json:4: tasks.a.run: -1: expected a time"),
        ({"run": "3m"}, '"3ms"'),
        ({"run": "1.5ns"}, "expected a time that is a whole number of"),
        ({"run": True}, "tasks.a.run: true: expected a time"),
        ({"run": 1e300}, "tasks.a.run"),
        ({"run": 1, "instance": 1.5}, "w.json:5: tasks.a.instance: 1.5"),
        ({"run": 1, "instance": 0}, "at least one task with an `instance`"),
        ({"run": 1, "loop": 0}, "tasks.a.loop: 0: expected -1"),
        ({"run": 1, "nice": 20}, "from -20 to 19"),
        ({"run": 1, "taskgroup": 3}, "tasks.a.taskgroup"),
        ({"run": 1, "weight": "x"}, "from 1 to 10"),
        ({"run": 1, "group": "longer than8"}, "a group: 1 to 8 letters"),
        ({}, "tasks.a: an object: expected at least one event"),
        (3, "tasks.a: 3: expected an object"),
        ({"phases": {"p": {"loop": 2}}}, "tasks.a.phases.p"),
        ({"lock": 5}, "tasks.a.lock: 5: expected the name of a lock"),
        ({"wait": "c"}, "mutex"),
        ({"fork": "c"}, "the name of a task: a"),
        ({"suspend": 1}, "tasks.a.suspend"),
        ({"mem": -1}, "tasks.a.mem"),
        ({"offline": 0}, "a CPU from 1 on; CPU 0 is always online"),
        ({"set": {"task": "b", "nice": 1}}, "the name of a task: a"),
        ({"set": {"task": "a"}}, 'expected an object such as {"task": "cpu", "cpus": "0-1"}'),
        ({"set": {"task": "a", "dl-runtime": 1}}, "unknown: expected one of task, priority"),
        ({"set": {"task": "a", "nice": 99}}, "-20 to 19"),
        ({"loop": 1, "run": {"below": 9}, "set": {"task": "a", "nice": 1}}, "no random times"),
        ({"run": 1, "nice": 1, "policy": "SCHED_OTHER", "priority": 1}, "no `nice`"),
        ({"timer": {"ref": "t", "period": 1, "mode": 1}}, '"relative" or "absolute"'),
        ({"barrier1": "x", "barrier2": "x"}, "another name"),
        ({"barrier": "x", "fork": "a"}, "expected no barrier in a"),
        ({f"timer{i}": {"ref": f"unique{i}", "period": 1} for i in range(9)}, "at most 8 timers"),
        ({"run": 1, "arrivals": {"mean": 1, "distribution": "normal"}}, "a `distribution`"),
        ({"run": 1, "instance": 10, "arrivals": LONG}, "expected a shorter time"),
        ({"dl-runtime": "work", "run": 5}, "loops with an end"),
        ({"dl-runtime": "work", "loop": 1, "dl-period": 9, "run": 5}, "no `dl-period`"),
        ({"dl-runtime": "work", "loop": 1, "run": {"until": 9}}, "no `until`"),
        ({"phases": {"a": {"dl-runtime": "work", "run": 5}}}, "a time"),
    ],
    ids=str,
)
def test_a_wrong_task_is_refused(tmp_path: Path, task: object, word: str) -> None:
    assert word in complaint(tmp_path, {"tasks": {"a": task}})


ENDLESS = {"a": {"loop": 2**20, "phases": {"p": {"loop": 2**20, "fork": "b"}}}, "b": {"run": 1}}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "w.json:1: end of file"),
        ('{"tasks":\n\n {"a" 1}}', "w.json:3: 1}}: expected :"),
        ('{"tasks": {"a": {"run": 1}}} / x', "expected a comment or the end of the file"),
        ('{"tasks":\n "\\x"}', "w.json:2: not a string (Invalid \\escape)"),
        ("[" * 200, "at most 100 levels"),
        ('{"tasks": ' + "9" * 50 + "}", "at most 30 characters"),
        ("[]", "expected an object with `tasks`"),
        ({"tasks": {}}, "at least one task"),
        (
            '{"tasks": {"a": {"run": 1}}, "starter": {"loop": 1,\n "loop": 2}}',
            "w.json:2: starter.loop: given twice",
        ),
        ({"global": {"duration": "1s"}, "tasks": {}}, "global.duration"),
        ({"global": {"default_policy": "SCHED_X"}, "tasks": {}}, "global.default_policy"),
        ({"tasks": ENDLESS}, "at most 2147483638 processes"),
        ({"description": 1, "tasks": {}}, "description: 1: expected a text"),
    ],
    ids=str,
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: object, word: str) -> None:
    assert word in complaint(tmp_path, content)


def test_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"no\.json.*: cannot be read: No such file"):
        workload_files.read_workload_file(tmp_path / "no.json")
    (tmp_path / "w.json").write_bytes(b"\xff")
    with pytest.raises(WrongUsage, match="not UTF-8"):
        workload_files.read_workload_file(tmp_path / "w.json")


# --- JSON with lines


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1,]", [1]),
        ('{"a": 1,}', {"a": 1}),
        ("'it\\'s \"x\" \\n\\u00e9'", 'it\'s "x" \n\u00e9'),
        ("{'a': \"it's\"}", {"a": "it's"}),
        ('"two\nlines"', "two\nlines"),
        ("[007, -01.50, 2.]", [7, -1.5, 2.0]),
        ("[TRUE, False, Null]", [True, False, None]),
    ],
)
def test_json_is_read_as_json_c_reads_it(text: str, value: object) -> None:
    assert plain(parse(text).value) == value


def plain(value: object) -> object:
    """Returns the content as Python's reader gives it."""
    if isinstance(value, Object):
        return {key: plain(node.value) for key, node in value.members}
    if isinstance(value, tuple):
        return [plain(node.value) for node in value]
    return value


@pytest.mark.parametrize(
    "text", ["{", '{"a"}', "[1 2]", "tru", "[,]", "[1,,]", "{1: 2}", '"', "'", "-", "+1"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(JsonError):
        parse(text)


@pytest.mark.parametrize("text", ['"a', r'"\q"', r'"\u12"'])
def test_a_broken_string_is_refused_with_a_fix(text: str) -> None:
    with pytest.raises(JsonError, match=r"not a string \(.*\); end it with its quote, and write"):
        parse(text)


# --- the project's workloads


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_of_the_project_are_good(path: Path) -> None:
    file = workload_files.read_workload_file(path)
    assert not file.notes
    assert format_workload(file, 1, TICK)


def test_monitor_palette_exists() -> None:
    """Each entry has a file, and each file an entry, except for files described by a page."""
    palette_entries = read_palette()
    shown = {entry.file for entry in palette_entries.values()}
    assert shown == {
        path
        for path in FILES
        if path.parent.name
        not in (
            "agreement",
            "open",
            "heuristics",
            "hostile",
            "tickets",
            "samples",
            "tools",
            "questions",
        )
    }
    assert {name for name, entry in palette_entries.items() if entry.kind == "simple"} == {
        path.stem for path in FILES if path.parent.name == "monitor"
    }


def test_the_palettes_simple_ones_give_their_starter_nothing() -> None:
    """The process that starts them has only the default tickets, because charts show all
    processes.
    """
    for entry in read_palette().values():
        if entry.kind == "simple":
            file = workload_files.read_workload_file(entry.file)
            assert file.starter and not file.starter.attributes
            assert not file.drawing(), "the same for each seed: systems side by side do the same"
