# SPDX-License-Identifier: MIT
"""Tests the simulator as WebAssembly, in a browser: its traces are the native simulator's,
byte for byte.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from conftest import ROOT
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM, build
from schedlab.base.toolchain.policies import distinct_policies
from schedlab.monitor.standalone.modules import bundled
from schedlab.paths import BUILD_FOLDER
from schedlab.workload import workload_files
from schedlab.workload.text import encode_workload, format_workload

MODULE = "build/page/machine.wasm"
SESSION = ROOT / "python" / "schedlab" / "monitor" / "page" / "session"
TICK_NS = 10_000_000
LIMIT_NS = 2_000_000_000
WORKLOADS = ("priority-mixed", "lottery-mixed", "ladder", "study3-inversion")

RUN = """async ({ policy, cpus, text, seed, tick, limit }) => {
    const machine = new Instance(compiled);
    const file = workloadOf(text, tick, "workload");
    const numbers = [cpus, 4096, BigInt(tick), BigInt(seed)];
    machine.obey("machine_play", policy, "", ...numbers, "kernel", file, file.length, true, 0);
    machine.call("machine_run", BigInt(limit));
    machine.obey("machine_finish");
    const header = machine.bytes(machine.call("machine_trace_header"), 64);
    const place = machine.call("machine_take_records");
    const records = machine.bytes(place, machine.call("machine_taken_bytes"));
    const reader = new FileReader();
    reader.readAsDataURL(new Blob([header, records]));
    await new Promise((resolve) => reader.addEventListener("load", resolve));
    return reader.result.split(",")[1];
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """Returns a page with the module of this checkout."""
    build(MODULE, str(SIMULATOR_PROGRAM.relative_to(ROOT)))
    page = browser.new_page()
    script = bundled(SESSION / "words.js", {})
    for module, name in (("module2", "instances"), ("module3", "words")):
        assert f"const {module} = " in script
        script = script.replace(f"const {module} =", f"const {module} = globalThis.{name} =")
    page.evaluate(f"() => {{ {script} Object.assign(globalThis, instances, words); }}")
    module = base64.b64encode((ROOT / MODULE).read_bytes()).decode()
    page.evaluate(
        """async (module) => {
            const bytes = Uint8Array.from(atob(module), (each) => each.charCodeAt(0));
            globalThis.compiled = await WebAssembly.compile(bytes);
        }""",
        module,
    )
    yield page
    page.close()


def test_a_copy_has_room_for_all_that_was_taken(page: Page) -> None:
    """This includes memory that is still unused: otherwise later writes would exceed the
    copy's memory.
    """
    sizes = page.evaluate(
        """() => {
            const machine = new Instance(compiled);
            machine.call("take_memory", 1 << 26);
            return [machine, machine.again(machine.snapshot())].map(({ buffer }) => buffer.byteLength);
        }"""
    )
    assert sizes[0] == sizes[1] > 1 << 26


def native(policy: str, cpus: int, played: Path, seed: int, trace: Path) -> bytes:
    """Returns the trace of the command's run."""
    words = ["--policy", policy, "--cpus", cpus, "--seed", seed, "--tick", TICK_NS]
    words += ["--limit", LIMIT_NS, "--trace-queues", "--trace", trace, played]
    subprocess.run([str(SIMULATOR_PROGRAM), *map(str, words)], capture_output=True, check=False)
    return trace.read_bytes()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_traces_are_the_native_simulators(page: Page, tmp_path: Path, workload: str) -> None:
    """This covers each policy, on one CPU and on four."""
    file = workload_files.read_workload_file(ROOT / "workloads" / "files" / f"{workload}.json")
    played = tmp_path / "workload.steps"
    played.write_bytes(encode_workload(file, 1, TICK_NS))
    text = format_workload(file, 1, TICK_NS)
    seed = 7
    for policy in map(str, distinct_policies()):
        for cpus in (1, 4):
            expected = native(policy, cpus, played, seed, tmp_path / "trace.bin")
            options = {"policy": policy, "cpus": cpus, "text": text, "seed": seed}
            made = page.evaluate(RUN, {**options, "tick": TICK_NS, "limit": LIMIT_NS})
            assert len(expected) > 64 + 32 * 100
            assert base64.b64decode(made) == expected, (policy, cpus)


def test_module_lists_its_policies(page: Page) -> None:
    """The list equals the native catalogue."""
    build("build/policy_list")
    result = subprocess.run(
        [BUILD_FOLDER / "policy_list"], capture_output=True, text=True, check=True
    )
    assert page.evaluate("new Instance(compiled).printed('print_policies')") == result.stdout


def test_what_cannot_be_simulated_is_refused_with_the_cause(page: Page) -> None:
    wrong = "program root\\n  run 3m\\n"
    message = page.evaluate(
        f"""() => {{
            try {{
                workloadOf("{wrong}", 1000000, "workload");
            }} catch (error) {{
                return error.message;
            }}
        }}"""
    )
    expected = "a time: a number and ns, us, ms, s or ticks, or until"
    assert message == f"workload:2: 3m: expected {expected}"
