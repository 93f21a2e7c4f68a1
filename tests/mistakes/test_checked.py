# SPDX-License-Identifier: MIT
"""The checked simulator names the rule, the hook and the line of each typical mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from mistaken_policy import CHECKED, SOURCE, built, line_of, mistakes
from schedlab.errors import RuleBroken
from schedlab.machines import checked
from schedlab.paths import ROOT

FILE = "tests/mistakes/mistaken.c"
RULES = {
    "loop": ("pick() does not end: there is an endless loop, in mistaken_search()", None),
    "null": ("pick(): member access within null pointer", "tasks.first->level = 1"),
    "division": ("enqueue(): division by zero", "queue->now / state->zero"),
    "bounds": ("pick(): index", "turns[task->pid + 8]"),
    "lost": ("pick() returned null while", None),
    "twice": ("pick() returned pid", None),
    "stranger": ("pick() returned an address that is no task's", None),
    "verdict": ("tick() returned the verdict 99, which does not exist", None),
    "cpu": ("place() named CPU 1000, of which there are 4", None),
    "place": ("place() named CPU 3, on which pid", None),
    "host_field": ("tick() wrote to task->run_time of pid", "task->run_time = 0"),
    "waiter": ("overtakes() wrote to task->tickets of pid", "changed->tickets = 99"),
    "state": ("tick() reads or writes behind its state", "ticks)[2] = 1"),
}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    built(CHECKED)


@pytest.mark.parametrize("mistake", RULES)
def test_a_mistake_is_told_with_its_line_and_the_last_decisions(mistake: str) -> None:
    """Where the mistake is in a line that a sanitizer sees, that line; the hook's own line in any case."""
    rule, code = RULES[mistake]
    with pytest.raises(RuleBroken) as error:
        checked.run(SOURCE, f"mistake={mistakes()[mistake]}")
    headline, *below = str(error.value).splitlines()
    assert headline.startswith(f"policy mistaken broke a rule: {rule}")
    if code:
        assert f"{FILE}:{line_of(code)}" in headline
    assert below[0].strip().startswith("in its hook ")
    hook = headline.partition("rule: ")[2].partition("(")[0]
    assert below[1].strip().startswith(f"mistaken_{hook}() {FILE}:")
    assert below[2].strip() == "its last decisions:"
    assert len(below[3:]) == 10


def test_what_is_right_passes_and_a_kill_is_counted_but_is_no_mistake() -> None:
    sound = checked.run(SOURCE, "mistake=0")
    kills = checked.run(SOURCE, f"mistake={mistakes()['kill']}")
    assert (sound.setups, sound.kills) == (2, 0)
    assert sound.decisions > 1000
    assert kills.kills > 0


def test_a_variable_is_refused(tmp_path: Path) -> None:
    """By its name and line, from the symbols of what was compiled."""
    source = tmp_path / "counted.c"
    own, tick = "enum mistake {", "STATE_OF(task, struct mistaken_task)->ticks++;"
    text = SOURCE.read_text().replace("policy_mistaken", "policy_counted")
    text = text.replace(own, f"static uint64_t all_ticks;\n\n{own}").replace(tick, "all_ticks++;")
    source.write_text(text)
    line = text.splitlines().index("static uint64_t all_ticks;") + 1
    told = rf"counted broke a rule: it keeps variables .* all_ticks at .*counted.c:{line}\."
    with pytest.raises(RuleBroken, match=told):
        checked.check(source)


def test_a_source_that_has_passed_is_checked_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "again.c"
    source.write_text("first")
    tried: list[Path] = []
    monkeypatch.setattr(checked, "BUILD", tmp_path)
    monkeypatch.setattr(checked, "build", lambda *_, **__: None)
    monkeypatch.setattr(checked, "check_variables", lambda *_: None)
    monkeypatch.setattr(checked, "run", tried.append)
    (tmp_path / "checked" / "again").mkdir(parents=True)
    for _ in range(2):
        checked.check_once(source)
    assert len(tried) == 1
    source.write_text("second")
    checked.check_once(source)
    assert len(tried) == 2


def test_shipped_presets_are_checked_with_the_source_that_holds_them() -> None:
    from schedlab.toolchain.policies import PolicyChoice

    assert checked.sources_of(PolicyChoice("rr")) == [ROOT / "policies" / "rr.c"]
    sources = checked.sources_of(PolicyChoice("lottery", "thesis"))
    assert [source.stem for source in sources] == ["lottery", "study-lottery"]
