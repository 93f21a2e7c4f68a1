# SPDX-License-Identifier: MIT
"""Tests that each mistake of tests/mistakes/mistakes.yaml is found as early, and with the
facts, that the table states.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mistake_table import NAME, AuthorsMistake, read_mistakes
from mistaken_policy import CHECKED, SOURCE, built, mistakes
from schedlab.base.toolchain.build import raise_failure
from schedlab.base.toolchain.diagnosis import check_source
from schedlab.base.toolchain.verifier import estimate_hook_costs
from schedlab.courses.submissions import sandbox
from schedlab.courses.submissions.compiling import CompileError, compile_policy
from schedlab.courses.submissions.trial import PolicyForm
from schedlab.errors import BuildFailed, RuleBroken
from schedlab.machines import checked_simulator
from schedlab.paths import ROOT

pytestmark = pytest.mark.xdist_group("mistakes")  # all policies share one name, and so one build

BEGIN_MS = 20
"""When tests/mistakes/mistaken.c makes its mistake."""


def by_name(entry: AuthorsMistake) -> str:
    return entry.mistake


def names_line(message: str, source: Path, text: str) -> bool:
    """Returns True if a message names a line of the file that has one of these texts."""
    place = re.escape(str(source.relative_to(ROOT) if source.is_relative_to(ROOT) else source))
    lines = source.read_text().splitlines()
    numbers = {int(number) for number in re.findall(rf"{place}:(\d+)", message)}
    phrases = text.split(" or ")
    return any(phrase in lines[number - 1] for number in numbers for phrase in phrases)


def check_facts(message: str, source: Path, entry: AuthorsMistake) -> None:
    """Checks that the message has the words, line, hook and task of the table."""
    headline = message.splitlines()[0] if entry.hook else message
    assert entry.headline in headline
    assert not entry.at or names_line(headline, source, entry.at), message
    assert ":0:" not in headline
    assert not entry.hook or f"\n    in its hook {entry.hook}()" in message
    assert bool(re.search(r"\bpid \d", message.partition("its last decisions")[0])) == entry.task


@pytest.mark.parametrize("entry", read_mistakes("compile"), ids=by_name)
def test_the_compiler_finds_it(entry: AuthorsMistake, tmp_path: Path) -> None:
    """Each error occurs once, without make's lines."""
    source = entry.write(tmp_path)
    with pytest.raises((BuildFailed, RuleBroken)) as error:
        check_source(source)
    message = str(error.value)
    check_facts(message, source, entry)
    errors = [line for line in message.splitlines() if " error: " in line]
    assert len(errors) == len(set(errors)) <= 5
    assert "make" not in message.replace("makes", "") and "internal" not in message


@pytest.mark.parametrize("number", [0, 11])
def test_one_verdict_everywhere(number: int, tmp_path: Path) -> None:
    """`check`, `run` and `explore` call check_source(); submissions and failing builds report
    the same.
    """
    source = read_mistakes("compile")[number].write(tmp_path)
    with pytest.raises((BuildFailed, RuleBroken)) as error:
        check_source(source)
    headers = tuple(sorted(file.name for file in (ROOT / "policies").glob("*.h")))
    with pytest.raises(CompileError) as refused:
        compile_policy(
            PolicyForm(NAME, headers), source, trusted=bool(sandbox.missing_requirement())
        )
    assert str(refused.value) in str(error.value).replace(str(source), source.name)


def test_build_failure_names_the_policy_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message does not repeat the output of make and two compilers."""
    source = read_mistakes("compile")[0].write(tmp_path)
    monkeypatch.setattr("schedlab.base.toolchain.diagnosis._POLICIES", tmp_path)
    (tmp_path / "policy.h").write_text((ROOT / "policies" / "policy.h").read_text())
    for build_output in (
        f"policies/{NAME}.c:9: error\nmake: *** [x]\n",
        f"undefined: `policy_{NAME}'",
    ):
        with pytest.raises(BuildFailed, match="write SHARED_MEMORY") as error:
            raise_failure(build_output)
        assert names_line(str(error.value), source, "*own")


@pytest.mark.parametrize("entry", read_mistakes("setup"), ids=by_name)
def test_the_first_setup_is_refused(entry: AuthorsMistake, tmp_path: Path) -> None:
    source = entry.write(tmp_path)
    with pytest.raises(RuleBroken) as error:
        checked_simulator.check(source)
    check_facts(str(error.value), source, entry)


@pytest.mark.parametrize("entry", read_mistakes("run"), ids=by_name)
def test_the_checked_simulator_finds_it(entry: AuthorsMistake) -> None:
    """It is found within the stated machine time, with the hook's line and the last decisions."""
    built(CHECKED)
    with pytest.raises(RuleBroken) as error:
        checked_simulator.run_checks(SOURCE, f"mistake={mistakes()[entry.tunable]}")
    message = str(error.value)
    check_facts(message, SOURCE, entry)
    if not entry.hook:
        return  # found between hooks
    _, location, first_line, decisions, *ten = message.splitlines()
    at = re.search(r", at ([\d.]+) ms", location)
    assert at and BEGIN_MS <= float(at[1]) <= BEGIN_MS + entry.within
    assert re.fullmatch(r" +mistaken_\w+\(\) tests/mistakes/mistaken\.c:\d+", first_line)
    assert (decisions.strip(), len(ten)) == ("its last decisions:", 10)


@pytest.mark.parametrize("entry", read_mistakes("verifier"), ids=by_name)
def test_commands_are_detected_as_on_linux(entry: AuthorsMistake, tmp_path: Path) -> None:
    source = entry.write(tmp_path)
    check_source(source)
    with pytest.raises((BuildFailed, RuleBroken)) as error:
        estimate_hook_costs(source)
    check_facts(str(error.value), source, entry)


def test_a_lost_task_is_named_with_the_hook_that_had_it_last() -> None:
    """The line is also that hook's, not that of pick(), which only detected the loss."""
    built(CHECKED)
    with pytest.raises(RuleBroken) as error:
        checked_simulator.run_checks(SOURCE, f"mistake={mistakes()['forgotten']}")
    match = re.search(r"pid (\d+), which was last in enqueue\(\), at ([\d.]+) ms", str(error.value))
    assert match and int(match[1]) % 8 == 4 and float(match[2]) > BEGIN_MS
    assert "mistaken_enqueue() tests/mistakes/mistaken.c:" in str(error.value).splitlines()[2]


def test_sources_of_studies_have_the_names_of_policies() -> None:
    """Formerly `run` refused all of them after any change of a source."""
    for source in sorted((ROOT / "policies" / "studies").glob("*.c")):
        check_source(source)
