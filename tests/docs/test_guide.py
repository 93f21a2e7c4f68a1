# SPDX-License-Identifier: MIT
"""Tests docs/writing-a-policy.md: the code works after each step, with the results that it
states."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT, Command
from schedlab.base.toolchain.tools import require_system_compiler
from schedlab.commands.new_policy import render_template

GUIDE = ROOT / "docs" / "writing-a-policy.md"
NAME = "stride2"
STEPS = (1, 2, 3)

pytestmark = pytest.mark.xdist_group("guide")

SANITIZED = [
    *("-std=c17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fstrict-flex-arrays=3"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I."),
]


@dataclass(frozen=True)
class Block:
    """A fenced block; `kind` is the text after the opening fence."""

    kind: str
    text: str
    section: str


@cache
def blocks() -> tuple[Block, ...]:
    guide_blocks = []
    for section in re.split(r"^## ", GUIDE.read_text(), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for kind, text in re.findall(
            r"^```([^\n]+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL
        ):
            guide_blocks.append(Block(kind, text, title))
    return tuple(guide_blocks)


def of_step(step: int, kind: str) -> list[str]:
    """Returns the blocks of a kind in one step, in order."""
    return [b.text for b in blocks() if b.kind == kind and b.section.startswith(f"Step {step}:")]


@dataclass
class Source:
    """A C file as a student sees it: named parts, separated by blank lines."""

    parts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Source:
        source = cls()
        for part in re.split(r"\n{2,}", text.strip("\n")):
            name = part_name(part)
            assert name not in source.parts, f"two parts are called {name}"
            source.parts[name] = part
        return source

    def apply(self, block: str) -> None:
        """Replaces existing parts, and inserts each new part before the next existing one."""
        new = list(Source.of(block).parts.items())
        if new[0][0] == "members":
            self.set_members(new[0][1])
            return
        assert any(name in self.parts for name, _ in new), f"where does this belong?\n{block}"
        while new:
            name, part = new.pop(0)
            if name in self.parts:
                self.parts[name] = part
                last = name
                continue
            following = next((other for other, _ in new if other in self.parts), None)
            names = list(self.parts)
            place = names.index(following) if following else names.index(last) + 1
            items = list(self.parts.items())
            self.parts = dict([*items[:place], (name, part), *items[place:]])
            last = name

    def set_members(self, lines: str) -> None:
        """Sets members of the policy's definition, one per line."""
        definition = f"policy_{NAME}"
        text = self.parts[definition]
        for line in lines.splitlines():
            member = line.split("=")[0]
            if member in text:
                text = re.sub(rf"^{re.escape(member)}=.*$", line, text, flags=re.MULTILINE)
            else:
                text = text.replace("\n};", f"\n{line}\n}};")
        self.parts[definition] = text

    def text(self) -> str:
        return "\n\n".join(self.parts.values()) + "\n"


NAMES = (
    r"^#include",
    r"^#define (\w+)",
    r"^(enum) \{",
    r"^static const struct \w+ (\w+)\[",
    r"^(struct \w+) \{",
    r"^typedef",
    r"^_Static_assert",
    r"^POLICY_FUNCTION .*?(\w+)\(",
    r"^POLICY_DEFINITION (\w+)",
    r"^static void (\w+)\(",
    r"^int main",
    r"^const struct policy",
)


def part_name(part: str) -> str:
    """Returns what a part defines; for a comment that is a part by itself, the comment."""
    code = without_comments(part).strip()
    if code.startswith("."):
        return "members"
    for pattern in NAMES:
        match = re.match(pattern, code)
        if match:
            return match[match.lastindex or 0]
    assert not code, f"what is this?\n{part}"
    return part


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def policy_after(step: int) -> str:
    """Returns the policy's file after all steps up to this one."""
    source = Source.of(render_template("policy.c", NAME, "Waldspurger and Weihl 1995"))
    for step_number in range(1, step + 1):
        for block in of_step(step_number, "c"):
            source.apply(block)
    return source.text()


def policy_test_text(tests: list[str]) -> str:
    """Returns a test file: the head of the scaffold, these tests, and main()."""
    head, _, _ = render_template("policy_test.c", NAME, "").partition("/* PIDs count from 1.")
    names = re.findall(r"^static void (\w+)\(", "\n".join(tests), re.MULTILINE)
    calls = "".join(f"    run_test({name});\n" for name in names)
    return head + "\n".join(tests) + f"\nint main(void)\n{{\n{calls}    return 0;\n}}\n"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def lay_out(folder: Path, policy: str) -> Path:
    """Creates a folder with the policy, and with the files that it and its tests include."""
    for part in ("abi", "policies", "tests/host", "tests/policies"):
        shutil.copytree(ROOT / part, folder / part)
    (folder / "policies" / f"{NAME}.c").write_text(policy)
    return folder


def run_policy_tests(folder: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    source = f"tests/host/policy_{NAME}_test.c"
    (folder / source).write_text(policy_test_text(tests))
    built = run(folder, require_system_compiler().clang, *SANITIZED, source, "-o", "own-test")
    assert built.returncode == 0, built.stderr
    return run(folder, str(folder / "own-test"))


def run_laws(folder: Path) -> subprocess.CompletedProcess[str]:
    table = run(folder, "sh", str(ROOT / "tools/make_policy_table.sh"), f"policies/{NAME}.c")
    (folder / "table.c").write_text(table.stdout)
    sources = ["tests/policies/laws.c", "policies/support/registry.c", "table.c"]
    sources.append(f"policies/{NAME}.c")
    built = run(folder, require_system_compiler().clang, *SANITIZED, *sources, "-o", "laws")
    assert built.returncode == 0, built.stderr
    return run(folder, str(folder / "laws"), "1")


@pytest.mark.parametrize(
    "step", [*(pytest.param(n, marks=pytest.mark.long) for n in STEPS[:-1]), STEPS[-1]]
)
def test_all_steps_work(tmp_path: Path, step: int) -> None:
    folder = lay_out(tmp_path / "checkout", policy_after(step))
    tests = [test for step_number in range(1, step + 1) for test in of_step(step_number, "c test")]
    assert len(tests) == step
    completed = run_policy_tests(folder, tests)
    assert completed.returncode == 0, completed.stderr
    laws = run_laws(folder)
    assert laws.returncode == 0, laws.stderr


def without_line_numbers(text: str) -> list[str]:
    """Removes line numbers and the first failing case, which change whenever the invariants do."""
    text = re.sub(r"\b\d+ CPUs, seed \d+", "N CPUs, seed N", text)
    return re.sub(r"(\.c|\.h):\d+:", r"\1:", text).strip().splitlines()


@pytest.mark.parametrize("step", [2, 3])
def test_guide_tests_fail_before_their_step(tmp_path: Path, step: int) -> None:
    folder = lay_out(tmp_path / "checkout", policy_after(step - 1))
    completed = run_policy_tests(folder, of_step(step, "c test"))
    assert completed.returncode == 1
    (shown,) = of_step(step, "text failure")
    assert without_line_numbers(completed.stderr) == without_line_numbers(shown)


def mistakes() -> list[tuple[str, str]]:
    """Returns pairs of a harmful change and the failure that the invariants report for it."""
    section = [block for block in blocks() if block.section.startswith("When it goes wrong")]
    changes = [block.text for block in section if block.kind == "diff"]
    failures = [block.text for block in section if block.kind == "text failure"]
    return list(zip(changes, failures, strict=True))


@pytest.mark.parametrize("number", range(2))
def test_mistakes_lead_to_what_the_guide_shows(tmp_path: Path, number: int) -> None:
    change, shown = mistakes()[number]
    lines = change.splitlines()
    removed = "\n".join(line[1:] for line in lines if line[0] in " -")
    added = "\n".join(line[1:] for line in lines if line[0] in " +")
    policy = policy_after(STEPS[-1])
    function = "pick" if number == 0 else "steal"
    place = policy.index(removed, policy.index(f"{NAME}_{function}("))
    policy = policy[:place] + added + policy[place + len(removed) :]
    laws = run_laws(lay_out(tmp_path / "checkout", policy))
    assert laws.returncode == 1
    assert without_line_numbers(laws.stderr) == without_line_numbers(shown)


def comparable(source: Source) -> dict[str, str]:
    """Returns each part without comments and layout."""
    return {
        name: " ".join(without_comments(part).split())
        for name, part in source.parts.items()
        if without_comments(part).strip()
    }


def test_the_last_step_is_what_ships() -> None:
    shipped = Source.of(
        (ROOT / "policies" / "stride.c")
        .read_text()
        .replace("stride_", f"{NAME}_")
        .replace("STRIDE_", f"{NAME.upper()}_")
        .replace("policy_stride", f"policy_{NAME}")
        .replace('"stride"', f'"{NAME}"')
    )
    guide_source = Source.of(
        policy_after(STEPS[-1]).replace("Waldspurger 1995", "Waldspurger and Weihl 1995")
    )
    definition = f"policy_{NAME}"
    expected, actual = comparable(shipped), comparable(guide_source)
    members = {
        text.strip(" ;{}") for text in expected.pop(definition).partition("{")[2].split(", .")
    }
    guide_members = {
        text.strip(" ;{}") for text in actual.pop(definition).partition("{")[2].split(", .")
    }
    assert {m.strip(" .,") for m in guide_members} == {m.strip(" .,") for m in members}
    assert actual == expected


def test_what_the_guide_shows_of_the_last_step_is_laid_out_as_it_ships() -> None:
    """Comments count too: if all parts of a block are final, the shipped file contains it
    unchanged."""
    shipped = (ROOT / "policies" / "stride.c").read_text()
    last = {}
    for step in STEPS:
        for block in of_step(step, "c"):
            last.update(Source.of(block).parts)
    last.pop("members")
    for part in last.values():
        plain = part.replace(f"{NAME}_", "stride_").replace(f"{NAME.upper()}_", "STRIDE_")
        assert " ".join(plain.split()) in " ".join(shipped.split())


@pytest.mark.spike
def test_shares_on_the_kernel_are_those_of_the_guide(schedlab: Command, tmp_path: Path) -> None:
    (table,) = (block.text for block in blocks() if block.kind == "text shares")
    shown = [
        [float(share) for share in re.findall(r"([\d.]+) % [+-]", line)]
        for line in table.splitlines()
        if "CPU share, error" in line
    ]
    result = schedlab(
        *("run", "--json", "--workload", "lotterytest low", "--policy", "stride,rr"),
        *("--cpus", "1,2", "--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    runs = json.loads(result.stdout)["runs"]
    for column, run in enumerate(runs):
        groups = {group["group"]: group for group in run["metrics"]["groups"]}
        shares = [100 * groups[name]["share"] for name in "ABC"]
        guide = [row[column] for row in shown]
        if run["manifest"]["policy"] == "rr":  # some instructions decide who is alone on a CPU
            shares, guide = sorted(shares), sorted(guide)
        assert shares == pytest.approx(guide, abs=0.5)
