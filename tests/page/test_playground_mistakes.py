# SPDX-License-Identifier: MIT
"""Tests that the playground shows mistakes in policies with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import ROOT
from playground_page import (
    FIRST_COMPILE_MS,
    PICK,
    RR,
    TAKE,
    TICK,
    TWO_HOGS,
    edited,
    few,
    open_page,
    served_playground,
    state,
    write,
    write_and_run,
)

pytestmark = pytest.mark.xdist_group("mistakes in the playground")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_playground(tmp_path_factory.mktemp("playground")) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Returns a page with a ready compiler and without errors."""
    with open_page(browser, f"{address}#{TWO_HOGS}") as page:
        expect(state(page)).to_contain_text("Both schedules are the same")
        yield page


def with_member(mistake: tuple[str, int]) -> tuple[str, int]:
    """Returns a mistake in the line before the last edited one, whose source also has an array at the end of a
    task's state.
    """
    source, line = mistake
    last = "    uint32_t ticks; /* used of the slice */\n"
    assert last in source
    return source.replace(last, f"{last}    uint32_t few[2];\n"), line


FUNCTIONS = """
static __attribute__((noinline)) uint32_t half(run_queue_t *queue)
{
    return queue->queued > 3 ? 7 : (uint32_t)queue->remark / 2;
}

static uint32_t twice(run_queue_t *queue)
{
    uint32_t n = 0;
    while (n < 10)
        n = half(queue) ? 0 : half(queue);
    return n;
}
"""


def with_functions(mistake: tuple[str, int], begin: str = "while (state->") -> tuple[str, int]:
    """Returns a mistake in the line with `begin`, whose source has FUNCTIONS, too."""
    source = mistake[0].replace(TICK, f"{FUNCTIONS}\n{TICK}").replace("static", "POLICY_FUNCTION")
    lines = enumerate(source.splitlines(), 1)
    return source, next(number for number, text in lines if begin in text)


MISTAKES = {
    "a typo": edited("state->ticks++;", "state->tick++;"),
    "a missing semicolon": edited("    state->ticks++;", "    state->ticks++"),
    "a static variable": edited(
        TICK, f"static uint32_t count;\n\n{TICK}\n    state->ticks += count++;"
    ),
    "an endless loop": edited(
        "    state->ticks++;", "    state->ticks++;\n    for (volatile int i = 0;; i = i) { }"
    ),
    "a loop whose condition stays true": edited(
        "    state->ticks++;",
        "    state->ticks++;\n    uint32_t i = 0;\n    while (i < 10) queue->remark++;",
    ),
    "an endless loop of calls": with_functions(
        edited(
            "    state->ticks++;",
            "    while (state->ticks < 1000)\n        state->ticks = half(queue);",
        )
    ),
    "an endless loop in a function": with_functions(
        edited("    state->ticks++;", "    state->ticks = twice(queue);"), "while (n < 10)"
    ),
    "a null pointer": edited(
        "    state->ticks++;",
        "    const task_t *none = task->pid ? NULL : task;\n    state->ticks += none->slot;",
    ),
    "a division by zero": edited(
        "    state->ticks++;", "    volatile uint32_t none = 0;\n    state->ticks /= none;"
    ),
    "an array's end": edited(
        "    state->ticks++;",
        "    volatile uint32_t few[2] = {0};\n    state->ticks += few[state->ticks + 2];",
    ),
    "the end of a state's last array": with_member(
        edited("    state->ticks++;", "    state->few[state->ticks + 2] = 1;\n    state->ticks++;")
    ),
    "a lost task": edited(
        PICK,
        PICK.replace("    if", "    if (queue->now > 50000000)\n        return NULL;\n    if", 1),
    ),
    "a task lost in enqueue()": edited(
        "    bool goes_on = reason",
        "    if (reason == ENQUEUE_EXPIRED)\n        return;\n    bool goes_on = reason",
    ),
    "an enqueue() without effect": edited(
        "        task_list_insert_before(&state->tasks, task, goes_on ? state->tasks.first : NULL);",
        "        goes_on = true;",
    ),
    "a task lost in pick()": edited(
        TAKE,
        f"    if (queue->now > 50000000)\n    {TAKE.replace('return ', '')}\n{TAKE}",
    ),
    "a field of the host": edited(
        "    state->ticks++;", "    task->tickets = 5;\n    state->ticks++;"
    ),
    "an unknown task": edited(
        PICK,
        PICK.replace(
            "    if", "    if (queue->now > 50000000)\n        return (task_t *)8;\n    if", 1
        ),
    ),
    "no tick hook": edited("    .tick = rr_tick,\n", ""),
    "a time slice of 0": edited(
        "    return (uint64_t)scheduler->tunable[RR_SLICE];", "    (void)scheduler;\n    return 0;"
    ),
    "a trap": edited(
        "task_t *rr_pick(run_queue_t *queue, uint32_t cpu)\n{",
        "task_t *rr_pick(run_queue_t *queue, uint32_t cpu)\n{\n    __builtin_trap();",
    ),
}
MESSAGES = {
    "a typo": "no member named",
    "a missing semicolon": "expected ';'",
    "a static variable": "count: a variable outside",
    "an endless loop": r"tick\(\): it does not end",
    "a loop whose condition stays true": r"tick\(\): it does not end",
    "an endless loop of calls": r"tick\(\): it does not end",
    "an endless loop in a function": r"tick\(\): it does not end",
    "a null pointer": r"tick\(\): it uses a null pointer",
    "a division by zero": r"tick\(\): it divides by zero",
    "the end of a state's last array": r"tick\(\): it accesses an array beyond its end",
    "an array's end": r"tick\(\): it accesses an array beyond its end",
    "a lost task": r"pick\(\): .*returned null .*: hog \d, queued since \d+\.\d{3} ms",
    "a task lost in enqueue()": r"enqueue\(\): it loses hog 4: nothing in the policy refers to this",
    "an enqueue() without effect": r"enqueue\(\): it loses pid 1: nothing in the policy refers to",
    "a task lost in pick()": r"pick\(\): it loses hog \d: nothing in the policy refers to this task",
    "a field of the host": r"tick\(\): it wrote to task->tickets",
    "an unknown task": r"pick\(\): it returned an address that is not a task",
    "no tick hook": "a required hook is missing",
    "a time slice of 0": r"time_slice\(\): .* has a time slice of 0; time_slice\(\) must return at least 1",
    "a trap": r"pick\(\): unreachable",
}


WITHOUT_A_PLACE = {
    "a static variable": "static uint32_t count;",
    "a lost task": "task_t *rr_pick(",
    "a task lost in enqueue()": "if (reason == ENQUEUE_EXPIRED)",
    "an enqueue() without effect": "if (queue->scheduler->tunable[RR_TABLE_SCAN])",
    "a task lost in pick()": TAKE.replace("return ", ""),
    "a field of the host": "tick_verdict rr_tick(",
    "an unknown task": "task_t *rr_pick(",
    "no tick hook": "POLICY_DEFINITION",
    "a time slice of 0": "uint64_t rr_time_slice(",
}
"""Rules that are checked after a hook: the place is the hook's, or the last or a rare line of its call."""


LIKE_ANOTHER = (
    "a missing semicolon",
    "a loop whose condition stays true",
    "an endless loop of calls",
    "the end of a state's last array",
    "a trap",
)
"""Mistakes that are found in the same way as another one."""


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(mistake, marks=[pytest.mark.long] if mistake in LIKE_ANOTHER else [])
        for mistake in MISTAKES
    ],
)
def test_a_mistake_is_shown_with_its_line(page: Page, mistake: str) -> None:
    source, line = MISTAKES[mistake]
    if mistake in WITHOUT_A_PLACE:
        begin = WITHOUT_A_PLACE[mistake]
        line = next(number for number, text in enumerate(source.splitlines(), 1) if begin in text)
    write(page, source)
    message = re.compile(f"Line {line}: .*{MESSAGES[mistake]}")
    expect(state(page)).to_contain_text(message, timeout=FIRST_COMPILE_MS)


PLACED = """program root
  fork bound
  fork hog
  fork hog
  wait all
program bound
  cpus 1
  loop
    run 5ms
    sleep 5ms
  end
program hog
  run 100ms
"""
BAD_CPUS = {
    "place": (
        "static uint32_t rr_place(const scheduler_t *scheduler, const task_t *task, enum enqueue_reason reason)\n"
        "{\n    (void)scheduler;\n    (void)reason;\n    return task->pid > 4 ? 99 : 0;\n}\n",
        "named a CPU that does not exist",
    ),
    "place of a bound task": (
        "POLICY_FUNCTION uint32_t rr_place(const scheduler_t *scheduler, const task_t *task,\n"
        "    enum enqueue_reason reason)\n"
        "{\n    (void)scheduler;\n    (void)reason;\n    (void)task;\n    return 0;\n}\n",
        "named a CPU on which the task may not run",
    ),
    "push": (
        "static uint32_t rr_push(const scheduler_t *scheduler, uint32_t cpu)\n"
        "{\n    return scheduler->queue[cpu]->queued ? 64 : NO_CPU;\n}\n",
        "named a CPU that does not exist",
    ),
}


@pytest.mark.parametrize("mistake", few(BAD_CPUS, 1))
def test_a_wrong_cpu_is_shown_at_its_hook(page: Page, mistake: str) -> None:
    function, message = BAD_CPUS[mistake]
    hook = mistake.split()[0]
    source = RR.replace("POLICY_DEFINITION", f"{function}\nPOLICY_DEFINITION").replace(
        "    .pick = rr_pick,", f"    .pick = rr_pick,\n    .{hook} = rr_{hook},"
    )
    line = next(
        number for number, text in enumerate(source.splitlines(), 1) if f"rr_{hook}(" in text
    )
    page.get_by_role("tab", name="settings").click()
    page.get_by_label("CPUs").fill("2")
    page.get_by_role("tab", name="workload").click()
    page.get_by_label("The workload, in words").fill(PLACED)
    write(page, source)
    expect(state(page)).to_contain_text(f"Line {line}: {hook}(): ", timeout=FIRST_COMPILE_MS)
    expect(state(page)).to_contain_text(message)
    page.get_by_role("tab", name="settings").click()
    page.get_by_label("CPUs").fill("1")
    page.get_by_label("Workload", exact=True).select_option("two-hogs")


SHOWN_TOGETHER = """() => {
    const parts = ["#result .state", ".findings"].map((name) => document.querySelector(name));
    window.shown = [];
    const note = () => window.shown.push(parts.map(({ textContent }) => textContent));
    const watch = { childList: true, characterData: true, subtree: true };
    for (const part of parts) new MutationObserver(note).observe(part, watch);
}"""
BROKE = "The policy broke a rule at 0."


def test_a_broken_rule_is_shown_everywhere_at_once(page: Page) -> None:
    """The quick compilation does not find it. Its metrics are not compared, but its waits can be opened."""
    source, line = MISTAKES["a null pointer"]
    write(page, RR + "/* not broken */\n")
    expect(state(page)).to_contain_text("Both schedules are the same", timeout=FIRST_COMPILE_MS)
    page.evaluate(SHOWN_TOGETHER)
    write(page, source)
    findings = page.locator(".findings").first
    expect(findings).to_contain_text(BROKE, timeout=FIRST_COMPILE_MS)
    expect(findings).to_contain_text(f"s: Line {line}: tick(): it uses a null pointer")
    shown: list[tuple[str, str]] = page.evaluate("window.shown")
    assert any(header.startswith("Both schedules are the same") for header, _ in shown)
    assert {header.startswith(f"Line {line}: ") for header, below in shown if BROKE in below} == {
        True
    }
    expect(findings.locator("table")).to_have_count(0)
    expect(findings.locator("ol li").first).to_contain_text("not ended")


def function_before_tick(definition: str, statement: str) -> str:
    """Returns round-robin's source with a function, and a statement of tick() that calls it."""
    tick = "POLICY_FUNCTION enum tick_verdict rr_tick"
    source = RR.replace(tick, f"POLICY_FUNCTION {definition}\n\n{tick}", 1)
    return source.replace("    state->ticks++;", f"    state->ticks++;\n    {statement}", 1)


BROKEN_ON_LINUX = {
    "a loop": (RR.replace(" && LOOP_GUARD", "", 1), "while (task &&", "loop without LOOP_GUARD"),
    "stack": (
        RR.replace(
            "    state->ticks++;",
            "    volatile uint64_t many[80];\n    many[state->ticks % 80] = 1;\n    state->ticks++;",
        ),
        "enum tick_verdict rr_tick(",
        "at least 672 bytes of stack, of 512",
    ),
    "floating point": (
        RR.replace("state->ticks++;", "state->ticks = (uint32_t)(state->ticks * 1.1) + 1;"),
        "* 1.1",
        "computes with floating-point numbers",
    ),
    "recursion": (
        function_before_tick(
            "uint32_t depth(task_t *task, uint32_t n)\n{\n    return n == 0 || !task ? 0 :"
            " depth(task->next, n - 1) + depth(task->previous, n - 1);\n}",
            "state->ticks += 0 * depth(task, (uint32_t)queue->now);\n"
            "    queue->remark = depth(task, task->slot);",
        ),
        "depth(task->next",
        "recursion: depth > depth",
    ),
    "a pointer to a function": (
        function_before_tick(
            "uint32_t one(void)\n{\n    return 1;\n}",
            "uint32_t (*volatile get)(void) = one;\n    queue->remark = get();",
        ),
        "queue->remark = get()",
        "calls through a pointer",
    ),
    "six parameters": (
        function_before_tick(
            "uint32_t six(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f)\n"
            "{\n    return a ^ b ^ c ^ d ^ e ^ f;\n}",
            "queue->remark = six(task->slot, task->cpu, task->group, task->weight, task->tickets,"
            " queue->cpu);",
        ),
        "uint32_t six(",
        "six() has 6 parameters; Linux allows 5",
    ),
    "an address space": (
        RR.replace(
            "    struct rr_task SHARED_MEMORY *state = STATE_OF(task, struct rr_task);",
            "    struct rr_task *state = STATE_OF(task, struct rr_task);",
        ),
        "    struct rr_task *state",
        "write SHARED_MEMORY in the pointer's type",
    ),
}


@pytest.mark.parametrize("mistake", few(BROKEN_ON_LINUX, 1))
def test_a_broken_rule_of_linux_is_shown_with_its_line(page: Page, mistake: str) -> None:
    source, begin, message = BROKEN_ON_LINUX[mistake]
    assert source != RR
    line = next(number for number, text in enumerate(source.splitlines(), 1) if begin in text)
    write_and_run(page, source)
    rules = page.get_by_role("region", name="Rules of Linux").locator("li")
    rule = rules.filter(has_text=message)
    expect(rule).to_contain_text(f"Line {line}", timeout=FIRST_COMPILE_MS)
    rule.get_by_role("button", name=f"Go to line {line}").click()  # the editor draws what is near
    expect(page.locator(".cm-lint-marker-warning").first).to_be_visible()


BROKEN_ELSEWHERE = {
    "the greatest value of a tunable": (
        "rr",
        "    state->ticks++;",
        "    state->ticks++;\n    if (queue->scheduler->tunable[RR_SLICE] == 1000)\n"
        "        state->ticks /= (uint32_t)(queue->now - queue->now);",
        "state->ticks /=",
        "tick(): it divides by zero (workload scenario, 1 CPU, slice=1000)",
    ),
    "a task that yields": (
        "rr",
        "    bool goes_on = reason",
        "    if (reason == ENQUEUE_YIELDED)\n        return;\n    bool goes_on = reason",
        "void rr_enqueue(",
        "enqueue(): it loses child ",
    ),
    "a task that may not run there": (
        "rr",
        "    return task_list_take_first_on(&STATE_OF(queue, struct rr_queue)->tasks, cpu);",
        "    (void)cpu;\n    return task_list_take_first(&STATE_OF(queue, struct rr_queue)->tasks);",
        "task_t *rr_pick(",
        "pick(): it returned pid 5 for CPU 1, where this task may not run; call task_may_run_on()",
    ),
    "starvation": (
        "stride",
        "    state->pass += stride_pass(used, state->tickets);\n",
        "",
        "",
        "one of five tasks of equal shares (workload sharing, 1 CPU)",
    ),
}


@pytest.mark.parametrize("mistake", few(BROKEN_ELSEWHERE, 1))
def test_a_rule_that_the_shown_run_keeps_is_checked(
    browser: Browser, address: str, mistake: str
) -> None:
    base, old, new, begin, message = BROKEN_ELSEWHERE[mistake]
    shipped = (ROOT / "policies" / f"{base}.c").read_text()
    assert old in shipped
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{address}#{TWO_HOGS.replace('base=rr', f'base={base}')}")
    expect(state(page)).to_contain_text(re.compile("Both |First difference"))
    checked = page.get_by_role("region", name="Check")
    write_and_run(page, shipped + "/* unchanged */\n")
    expect(checked).to_contain_text("No rule is broken", timeout=FIRST_COMPILE_MS)
    source = shipped.replace(old, new, 1)
    write_and_run(page, source)
    expect(checked).to_contain_text(message)
    if begin:
        lines = source.splitlines()
        line = next(number for number, text in enumerate(lines, 1) if begin in text)
        expect(checked).to_contain_text(f"Line {line}")
    page.close()
