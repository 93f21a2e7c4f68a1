# SPDX-License-Identifier: MIT
"""Tests submissions that attack: none changes its grade or the grader, and each has a reason."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.toolchain.tools import require_compiler
from schedlab.courses.grading.grading import Grader, grader
from schedlab.courses.grading.lab import read
from schedlab.courses.grading.verdict import Verdict
from schedlab.courses.submissions import sandbox, wasm_policy
from schedlab.courses.submissions.compiling import CompileError, compile_policy
from schedlab.errors import MachineUnfit
from submissions import PICK, SOLUTION, picking, small_lab, solution_with

pytestmark = pytest.mark.xdist_group("grading")

HIDDEN = ROOT / "labs" / "round-robin" / "lab.json"
in_sandbox = pytest.mark.skipif(
    bool(sandbox.missing_requirement()), reason=sandbox.missing_requirement()
)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    lab = read(small_lab(tmp_path_factory.mktemp("labs") / "small"))
    with grader(lab, trusted=bool(sandbox.missing_requirement())) as made:
        yield made


def graded(ready: Grader, folder: Path, text: str, name: str = "mine.c") -> Verdict:
    source = folder / name
    source.write_text(text)
    return ready.grade(source)


REFUSED = {
    "inline assembly that includes a file": (
        picking(f'__asm__(".incbin \\"{HIDDEN}\\"");'),
        "inline assembly is disabled",
    ),
    "a function of the C library": (
        picking("exit(0);", "void exit(int status);"),
        "it uses exit, which is not of policies/, at mine.c:",
    ),
    "a call of the system": (picking("syscall(1);", "long syscall(long number, ...);"), "syscall"),
    "the name of a function of the other side": (
        solution_with(
            "POLICY_DEFINITION", "void serve(void);\nvoid serve(void)\n{\n}\n\nPOLICY_DEFINITION"
        ),
        "duplicate symbol: serve",
    ),
    "a variable": (
        picking("count++;", "static int count;"),
        "variables outside of its state: count",
    ),
    "a variable that the kernel's compiler does not see": (
        picking(
            "see();",
            "#ifdef __wasm__\nstatic int count = 1;\n#define see() count++\n#else\n#define see()\n#endif",
        ),
        "variables outside of its state: count",
    ),
    **{
        f"a policy that depends on {macro}": (
            picking(f"if ({macro}[4] == '0')\n        return NULL;"),
            "date or time macro is not reproducible",
        )
        for macro in ("__TIME__", "__DATE__", "__TIMESTAMP__")
    },
    "memory without end": (
        picking("much[cpu] = 1;", "static char much[1 << 25];"),
        "variables outside of its state: much",
    ),
    "no policy": ("/* nothing */\n", "it defines no policy_turns"),
    "what is no C": ("int main(", "mine.c:1:"),
}
BROKEN = {
    "an endless loop": (
        picking("while (true)\n        ;"),
        "pick(): it does not end within 10,000,000 instructions",
    ),
    "a loop whose condition stays true": (
        picking("uint32_t i = cpu;\n    while (i < 10)\n        queue->remark++;"),
        "pick(): it does not end within 10,000,000 instructions",
    ),
    "recursion": (
        picking(
            "deep(cpu);",
            "static int deep(int a)\n{\n    volatile int b[99] = {a};\n"
            "    return b[0] < 0 ? 0 : deep(a + 1) + b[1];\n}\n",
        ),
        "it calls itself without end",
    ),
    "all of its memory": (
        picking(
            "for (uint32_t i = 64; i < 16u << 20; i += 4)\n        *(volatile uint32_t *)(uintptr_t)i = 0xffffffff;"
        ),
        "small",
    ),
    "a task of its own": (
        solution_with(PICK, "    (void)cpu;\n    return (task_t *)((uintptr_t)queue + 8);\n"),
        "an address that is not a task",
    ),
    "no task": (
        solution_with(
            PICK, "    (void)cpu;\n    return queue->queued > 5 ? queue->current : NULL;\n"
        ),
        "returned null while tasks are queued",
    ),
    "the host's fields": (
        picking("queue->queued = 0;"),
        "it wrote to queue->queued, which is the host's",
    ),
    "a null pointer": (picking("queue->current->level = 1;"), "null pointer"),
    "a division by zero": (
        picking("volatile uint32_t zero = cpu;\n    zero = 1 / zero;"),
        "divides by zero",
    ),
    "the end of a structure's last array": (
        picking(
            "((struct few SHARED_MEMORY *)queue->state)->turns[queue->queued + 4]++;",
            "struct few {\n    uint32_t turns[4];\n};",
        ),
        "beyond its end",
    ),
    "what runs before all else": (
        solution_with(
            "POLICY_DEFINITION",
            "__attribute__((constructor)) static void first(void)\n{\n    __builtin_trap();\n}\n\nPOLICY_DEFINITION",
        ),
        "cannot be run",
    ),
    "tasks that are ended": (
        solution_with("TICK_PREEMPT :", "TICK_KILL :"),
        "2 processes by returning TICK_KILL",
    ),
    "tasks that are held": (
        picking(
            "queue->held = queue->queued;\n    queue->alarm = queue->now + 1000000000000;\n"
            "    if (queue->queued)\n        return NULL;"
        ),
        "",
    ),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_what_is_no_policy_is_refused_with_the_compilers_words(
    ready: Grader, tmp_path: Path, attack: str
) -> None:
    text, words = REFUSED[attack]
    verdict = graded(ready, tmp_path, text, "mine.c")
    assert verdict.points == 0 and verdict.max_points == 9
    assert words in verdict.refused, verdict.refused


@pytest.mark.parametrize("attack", BROKEN)
def test_a_policy_that_breaks_a_rule_has_no_points_and_the_reason(
    ready: Grader, tmp_path: Path, attack: str
) -> None:
    text, words = BROKEN[attack]
    verdict = graded(ready, tmp_path, text)
    assert not verdict.refused
    assert verdict.points == 0
    assert verdict.tests[0].run_failure
    assert words in verdict.tests[0].run_failure or words == "small", verdict.tests[0].run_failure


def test_line_is_reported(ready: Grader, tmp_path: Path) -> None:
    text = picking("while (true)\n        ;")
    line = next(
        n for n, source_line in enumerate(text.splitlines(), 1) if "while (true)" in source_line
    )
    verdict = graded(ready, tmp_path, text)
    assert f"in turns_pick() at mine.c:{line}" in verdict.tests[0].run_failure


def test_a_policy_that_asks_for_itself_again_and_again_is_ended(
    ready: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wasm_policy, "RUN_CALLS", 2000)
    alarm = "POLICY_FUNCTION task_t *ring(run_queue_t *queue)\n{\n    queue->alarm = queue->now;\n    return NULL;\n}\n"
    text = picking("queue->alarm = queue->now;", alarm).replace(
        ".tick =", ".alarm = ring,\n    .tick ="
    )
    assert "again and again" in graded(ready, tmp_path, text).tests[0].run_failure


@in_sandbox
@pytest.mark.parametrize(
    "trick",
    [
        f'#include "{HIDDEN}"',
        f'#include "{SOLUTION}"',
        '#include "/etc/passwd"',
        '#include "/dev/zero"',
        '#include "/proc/self/environ"',
    ],
)
def test_other_files_cannot_be_included(ready: Grader, tmp_path: Path, trick: str) -> None:
    assert "file not found" in graded(ready, tmp_path, f"{trick}\n").refused


@pytest.mark.parametrize(
    "trick",
    [
        f'#include "{SOLUTION}"',
        f'#ifdef __riscv\n#include "{HIDDEN}"\n#endif',
        f'#include "{HIDDEN}"\n#error',
        f'char *of = (char[]){{\n#embed "{HIDDEN}"\n}};',
        '#include "../submission.c/../x"',
    ],
)
def test_nor_can_they_outside_of_the_sandbox(tmp_path: Path, trick: str) -> None:
    """The compiler could read the solution and the hidden tests, but no word of them appears."""
    lab = read(small_lab(tmp_path / "a small lab"))
    source = tmp_path / "mine.c"
    source.write_text(f"{trick}\n")
    with pytest.raises(CompileError) as error:
        compile_policy(lab.form, source, trusted=True)
    assert re.fullmatch(
        r"it includes \S+, which submissions cannot use|the preprocessor rejects it",
        str(error.value),
    )
    assert compile_policy(lab.form, lab.solution, trusted=True).name == "turns"


@in_sandbox
def test_existence_of_files_is_hidden(ready: Grader, tmp_path: Path) -> None:
    places = (HIDDEN, SOLUTION, "/etc/passwd", "/proc/self/maps", "/dev/null", "/root", "/home")
    probe_source = "".join(
        f'#if __has_include("{place}")\n#error "it sees {place}"\n#endif\n' for place in places
    )
    verdict = graded(
        ready, tmp_path, f"{probe_source}{SOLUTION.read_text()}", "a name; with 'quotes'.c"
    )
    assert not verdict.refused
    assert verdict.points == 9


@in_sandbox
def test_the_sandbox_has_no_network_no_files_of_the_host_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "told")
    file = tmp_path / "given"
    file.write_text("given\n")
    out = tmp_path / "out"
    out.mkdir()
    done = sandbox.Sandbox(out, {"given": file}, trusted=False).run(
        f"ls / {sandbox.WORK_PATH}; env; cat {sandbox.WORK_PATH}/given; echo made > {sandbox.OUT_PATH}/made;"
        f" echo no > {sandbox.WORK_PATH}/given; echo no > /usr/bin/no; id -u"
    )
    seen = done.output.split()
    assert (out / "made").read_text() == "made\n"
    assert file.read_text() == "given\n"
    assert done.output.count("cannot create") == 2
    assert {"root", "home", "etc", "proc", "dev", "sys", "var"}.isdisjoint(seen)
    assert "told" not in done.output


@in_sandbox
def test_what_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_CPU_SECONDS_MAX", 1)
    assert sandbox.Sandbox(tmp_path, {}, trusted=False).run("while :; do :; done").status != 0


@in_sandbox
def test_sandbox_sees_the_program_and_not_its_neighbours(tmp_path: Path) -> None:
    """The neighbours are also hidden below /tmp, which the sandbox replaces, and through links."""
    folder, out = tmp_path / "some where", tmp_path / "out"
    (folder / "real").mkdir(parents=True)
    out.mkdir()
    shutil.copy("/usr/bin/true", folder / "real" / "program")
    (folder / "link").symlink_to("real/program")
    (folder / "secret").touch()
    program = str(folder / "link")
    run = sandbox.Sandbox(out, {}, trusted=False, programs=(program,)).run
    assert run(f"'{program}' && link").status == 0
    assert run(f"ls '{folder}'").output.split() == ["link", "real"]
    assert run(f"ls '{folder / 'real'}'").output.split() == ["program"]


def test_libraries_are_located_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "some where" / "lib.so"
    listed = f"\tlinux-vdso.so.1 (0x1)\n\tlib.so => {library} (0x2)\n\t{tmp_path}/ld.so (0x3)"
    monkeypatch.setattr(sandbox, "program_output", lambda *_: listed)
    program = tmp_path / "program"
    shutil.copy("/usr/bin/true", program)
    expected = (program, library, tmp_path / "ld.so")
    assert sandbox._needed_files(str(program)) == expected


def test_a_folder_may_have_spaces_outside_of_the_sandbox(tmp_path: Path) -> None:
    out, given = tmp_path / "o ut", tmp_path / "gi ven"
    out.mkdir()
    given.write_text("1")
    copy = f"cp {sandbox.WORK_PATH}/given {sandbox.OUT_PATH}/made"
    assert sandbox.Sandbox(out, {"given": given}, trusted=True).run(copy).status == 0
    assert (out / "made").read_text() == "1"


@in_sandbox
def test_the_compiler_shows_nothing_else_of_its_folder(tmp_path: Path) -> None:
    """The compiler is in the user's cache folder."""
    sibling_file = Path(require_compiler().clang[0]).with_name("__init__.py")
    assert sibling_file.is_file()
    lab = read(small_lab(tmp_path / "small"))
    source = tmp_path / "mine.c"
    source.write_text(
        f'#if __has_include("{sibling_file}")\n#error "seen"\n#endif\n{SOLUTION.read_text()}'
    )
    assert compile_policy(lab.form, source, trusted=False).name == "turns"


@in_sandbox
@pytest.mark.parametrize("trusted", [False, True])
def test_what_cannot_be_started_is_the_hosts_fault(tmp_path: Path, trusted: bool) -> None:
    with pytest.raises(MachineUnfit, match="no-such-program is not on the PATH"):
        sandbox.Sandbox(tmp_path, {}, trusted, programs=("no-such-program",))
    inside = sandbox.Sandbox(tmp_path, {}, trusted)
    (tmp_path / "no-program").touch()
    for script in ("no-such-program", f"{sandbox.OUT_PATH}/no-program"):
        with pytest.raises(MachineUnfit, match=r"could not be started.*program"):
            inside.run(script)
    assert inside.run("exit 1").status == 1


def test_time_in_which_it_is_stopped_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script waits for a fifo, which opens after four times as many polls as the script may
    run."""
    monkeypatch.setattr(sandbox, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(sandbox, "_HOST_SECONDS_MAX", 0.1)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    inside = sandbox.Sandbox(tmp_path, {}, trusted=True)
    polls = 0

    def is_stopped(_pid: int) -> bool:
        nonlocal polls
        polls += 1
        if polls == 20:
            fifo.write_text("go on\n")
        return True

    monkeypatch.setattr(sandbox, "_is_stopped", is_stopped)
    assert inside.run(f"read line < {fifo}").status == 0
    assert polls >= 20
    monkeypatch.setattr(sandbox, "_is_stopped", lambda _: False)
    with pytest.raises(MachineUnfit, match="did not end"):
        inside.run(f"read line < {fifo}")


def test_without_namespaces_it_refuses_and_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sandbox, "missing_requirement", lambda: "bwrap is not on the PATH: install bubblewrap"
    )
    with pytest.raises(MachineUnfit, match=r"install bubblewrap.*trusted=True"):
        sandbox.need_sandbox()
