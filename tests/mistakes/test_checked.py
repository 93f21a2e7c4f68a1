# SPDX-License-Identifier: MIT
"""Tests the checked simulator's output for a correct policy, and when the check is repeated."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event, Thread

import pytest

from mistaken_policy import CHECKED, SOURCE, built, mistakes
from schedlab.base.toolchain import source_lines
from schedlab.base.toolchain.tools import program_output, require_compiler, require_system_compiler
from schedlab.errors import RuleBroken
from schedlab.machines import checked_simulator
from schedlab.paths import ROOT
from wrapping_policy import passes


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    built(CHECKED)


def test_what_is_right_passes_and_a_kill_is_counted_but_is_no_mistake() -> None:
    sound = checked_simulator.run_checks(SOURCE, "mistake=0")
    kills = checked_simulator.run_checks(SOURCE, f"mistake={mistakes()['kill']}")
    assert (sound.setups, sound.kills) == (18, 0)
    assert sound.decisions > 1000
    assert sound.depends_on_time == 0
    assert kills.kills > 0


@pytest.mark.parametrize(
    ("mistake", "value"),
    [
        ("clock_ns", "939 x 2^32 ns"),
        ("clock_us", "2^32 us"),
        ("clock_signed", "2^63 ns"),
        ("run_time", "2^32 us"),
    ],
)
def test_wrapping_clock_or_run_time_is_detected(mistake: str, value: str) -> None:
    with pytest.raises(RuleBroken) as error:
        checked_simulator.run_checks(SOURCE, f"mistake={mistakes()[mistake]}")
    assert f"while clock and run times pass {value}: after" in str(error.value)


def test_a_policy_whose_count_rounds_by_the_time_depends_on_the_time_and_is_no_mistake() -> None:
    """Study 1's priorities count passes of idle CPUs by time: rarely, a decision depends on
    the rounding.
    """
    passed = checked_simulator.check(
        ROOT / "policies" / "studies" / "study-priority.c", bound=False
    )
    assert passed.depends_on_time


@pytest.mark.parametrize("wraps", [False, True])
def test_starvation_by_a_wrapping_virtual_time_is_detected(wraps: bool, tmp_path: Path) -> None:
    source = passes(tmp_path / ("wraps.c" if wraps else "goes_on.c"), wraps)
    if wraps:
        with pytest.raises(
            RuleBroken, match=r"shares_by\(\) promises each task its share, but pid"
        ):
            checked_simulator.check(source, bound=False)
        return
    passed = checked_simulator.check(source, bound=False)
    assert 0 < passed.longest_wait_ns < 150_000_000
    assert (passed.never_served, passed.depends_on_time, passed.wraps) == (0, 0, ())


def test_a_source_that_has_passed_is_checked_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "again.c"
    source.write_text("first")
    tried: list[Path] = []

    def run(source: Path, bound: bool) -> checked_simulator.Passed:
        tried.append(source)
        return checked_simulator.Passed(1, 1, 0, 0, 0, 1, 0, 0)

    monkeypatch.setattr(checked_simulator, "BUILD_FOLDER", tmp_path)
    for name in ("build", "check_source", "estimate_hook_costs"):
        monkeypatch.setattr(checked_simulator, name, lambda *_, **__: [])
    monkeypatch.setattr(checked_simulator, "run_checks", run)
    for _ in range(2):
        checked_simulator.check_once(source)
    assert len(tried) == 1
    source.write_text("second")
    checked_simulator.check_once(source)
    assert len(tried) == 2


def test_another_file_of_the_same_policy_is_built_only_after_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have one folder, and the second deletes what the first has built."""
    monkeypatch.setattr(checked_simulator, "BUILD_FOLDER", tmp_path / "build")
    sources = [tmp_path / folder / "twin.c" for folder in ("one", "other")]
    entered = Event()

    def check_other() -> None:
        with checked_simulator.build_exclusively("checked", sources[1]):
            entered.set()

    with checked_simulator.build_exclusively("checked", sources[0]):
        built_file = tmp_path / "build" / "checked" / "twin" / "schedlab-sim"
        built_file.touch()
        other = Thread(target=check_other)
        other.start()
        assert not entered.wait(0.2)
        assert built_file.exists()
    other.join()
    assert entered.is_set()
    assert not built_file.exists()


def test_an_instruction_without_a_line_has_that_of_its_neighbour(tmp_path: Path) -> None:
    """The jump of an endless loop may be such an instruction."""
    source, program = tmp_path / "jump.c", tmp_path / "jump.so"
    jump = '__asm__ volatile(".globl jump\\njump: .loc 0 0\\nnop\\nnop\\n");'
    source.write_text(
        f"int count;\nvoid loop(void)\n{{\n    count++;\n    {jump}\n    count--;\n}}\n"
    )
    flags = ("-O1", "-gline-tables-only", "-gdwarf-5", "-shared", "-fPIC")
    subprocess.run([*require_compiler().host, *flags, str(source), "-o", str(program)], check=True)
    symbols = program_output(require_system_compiler().tool("llvm-nm"), str(program)).splitlines()
    address = next(int(line.split()[0], 16) for line in symbols if line.endswith(" jump"))
    (place,) = source_lines._symbolize(program, [address])[address]
    assert place.line == 0
    (place,) = source_lines.find_places(program, [address])[address]
    assert place.line in (4, 5, 6)
