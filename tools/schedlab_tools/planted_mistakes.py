# SPDX-License-Identifier: MIT
"""Plants small mistakes in our own sources and records which tests find them.

    python -m schedlab_tools.planted_mistakes draw REACH --seed 38    prints a list of drawn mistakes
    python -m schedlab_tools.planted_mistakes try [NUMBER...]         runs the tests, records verdicts

`tests/mistakes/planted.yaml` is the list. A mistake is identified by the text of a line, so that it survives
moves. If the file no longer contains the line, the only other file with this line is used.

REACH is a JSON file, path: line: tests. It was made once and is not kept. Python: coverage.py with one context for
each test, also in the commands that tests fork. C: each program of tests/host and tests/sim, and the scenario of ties
under every policy, compiled with clang's source coverage; and the lines of the blocks that QEMU translated
(`-d in_asm`) while the kernel ran programs of tests/guest. `draw` takes lines within functions only.
"""

import ast
import contextlib
import itertools
import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import yaml

from schedlab.base.toolchain.tools import require_compiler
from schedlab.courses.grading.mutants import make_mutants
from schedlab.paths import BUILD_FOLDER, ROOT

LIST_FILE = ROOT / "tests" / "mistakes" / "planted.yaml"
AREAS = {
    "metrics": ("python/schedlab/metrics/", 17),
    "runs": ("python/schedlab/runs/", 17),
    "commands": ("python/schedlab/commands/", 16),
    "policies": ("policies/", 17),
    "simulator": ("sim/", 17),
    "kernel": ("kernel/", 16),
}
"""Folders where lines are drawn, and how many."""
NOT_RUN = "not run"
LINE_REMOVED = "gone, with its code"
STAGE_TIMEOUT_S = 420
CHECK_C = "-fsyntax-only -std=c17 -O1 -Wall -Wextra -Werror -I. -Ikernel"
HOST_C = f"{CHECK_C} -D_GNU_SOURCE"
KERNEL_C = f"{CHECK_C} -ffreestanding --target=riscv64-unknown-elf -mabi=lp64 -mcmodel=medany"


@dataclass
class Mistake:
    """A line and its replacement, both without indentation.

    `number`: the name, such as "metrics-1". `occurrence`: number among the equal lines of the file,
    starting at 1. `tests`: arguments of pytest, one process each.
    """

    number: str
    path: str
    text: str
    occurrence: int
    replacement: str
    tests: list[str] = field(default_factory=list)
    verdict: str = NOT_RUN
    why: str = ""


def read_list() -> list[Mistake]:
    """Reads the list of mistakes."""
    return [Mistake(**entry) for entry in yaml.safe_load(LIST_FILE.read_text())]


def as_yaml(mistakes: Iterable[Mistake]) -> str:
    """Returns the mistakes as the text of the list."""
    entries = [{k: v for k, v in asdict(mistake).items() if v != ""} for mistake in mistakes]
    return str(yaml.safe_dump(entries, sort_keys=False, width=1000, allow_unicode=True))


def lines_equal_to(text: str, source: str) -> list[int]:
    """Returns the indices of the lines that equal this text, apart from indentation."""
    return [n for n, line in enumerate(source.splitlines()) if line.strip() == text]


def find_line(mistake: Mistake) -> tuple[Path, int]:
    """Returns the file and the index of the line. Raises LookupError unless exactly one file has the line."""
    path = ROOT / mistake.path
    places = lines_equal_to(mistake.text, path.read_text()) if path.exists() else []
    if len(places) >= mistake.occurrence:
        return path, places[mistake.occurrence - 1]
    command = ["git", "grep", "-lF", "-e", mistake.text, "--", f"*{path.suffix}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    files = [ROOT / name for name in listed.stdout.splitlines()]
    lines = {file: lines_equal_to(mistake.text, file.read_text()) for file in files}
    with_line = {file: places for file, places in lines.items() if places}
    same_name = {other: lines for other, lines in with_line.items() if other.name == path.name}
    candidates = list((same_name if len(same_name) == 1 else with_line).items())
    if len(candidates) != 1:
        raise LookupError(f"{len(candidates)} files have the line")
    other, places = candidates[0]
    return other, places[min(mistake.occurrence, len(places)) - 1]


@contextlib.contextmanager
def planted(mistake: Mistake) -> Iterator[Path]:
    """Plants the mistake in the file within the block. Both writes are newer than the build."""
    path, index = find_line(mistake)
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    indentation = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    lines[index] = f"{indentation}{mistake.replacement}\n"
    path.write_text("".join(lines))
    try:
        yield path
    finally:
        path.write_text(source)


def compiles(path: Path) -> bool:
    """True if a file compiles; a header is compiled as part of a file that includes it."""
    if path.suffix == ".py":
        command = [sys.executable, "-c", f"compile(open({str(path)!r}).read(), '', 'exec')"]
    else:
        command = compile_command(str(path.relative_to(ROOT)))
    return subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode == 0


def compile_command(path: str) -> list[str]:
    """Returns the compiler command of the last build for a file, or for a file that includes it."""
    program = require_compiler()
    for folder in ("sim", "kernel", "host-tests"):
        for dependencies in sorted((BUILD_FOLDER / folder).rglob("*.d")):
            dependency_words = dependencies.read_text().replace("\\\n", " ").split()
            if path not in dependency_words:
                continue
            if dependencies.parent.match("sim/engines*"):
                name = dependencies.stem.replace("-", "_")
                macros = [f"-DENGINE=engine_{name}", f"-DPOLICY=policy_{name}"]
                policy = next(w for w in dependency_words if re.fullmatch(r"policies/.*\.c", w))
                return [*program.host, *HOST_C.split(), *macros, "-include", policy, "sim/engine.c"]
            source = next(word for word in dependency_words if word.endswith(".c"))
            if folder == "kernel":
                return [*program.clang, *KERNEL_C.split(), source]
            return [*program.host, *HOST_C.split(), source]
    raise LookupError(f"{path}: nothing that is built includes it")


def changes_of(path: str, reached: Mapping[str, Sequence[str]]) -> dict[int, list[str]]:
    """Returns the possible replacements for each line that tests execute, by its index."""
    source = (ROOT / path).read_text()
    lines = source.splitlines()
    changed: dict[int, list[str]] = {}
    for index, line in python_mutants(source) if path.endswith(".py") else c_mutants(source):
        if str(index + 1) in reached and line.strip() not in (lines[index].strip(), ""):
            changed.setdefault(index, []).append(line.strip())
    return changed


def c_mutants(source: str) -> Iterator[tuple[int, str]]:
    """Yields the index and the changed text of each line, for mutants that change one line."""
    source_lines = source.splitlines()
    for mutant in make_mutants(source):
        new, index = mutant.source.splitlines(), mutant.line - 1
        if len(new) == len(source_lines) and new[index + 1 :] == source_lines[index + 1 :]:
            yield index, new[index]


def draw(reach: Mapping[str, Mapping[str, Sequence[str]]], seed: int) -> Iterator[Mistake]:
    """Draws lines uniformly within each area, and a change of each."""
    for area, (folder, count) in AREAS.items():
        rng = random.Random(f"{seed} {area}")
        changes = {
            (path, index): lines
            for path in sorted(reach)
            if path.startswith(folder)
            for index, lines in changes_of(path, reach[path]).items()
        }
        places = sorted(changes)
        rng.shuffle(places)
        drawn = 0
        for path, index in places:
            source = (ROOT / path).read_text()
            line_text = source.splitlines()[index].strip()
            occurrence = lines_equal_to(line_text, source).index(index) + 1
            mistake = Mistake("", path, line_text, occurrence, rng.choice(changes[path, index]))
            with planted(mistake) as file:
                sound = compiles(file)
            if sound:
                drawn += 1
                mistake.number = f"{area}-{drawn}"
                mistake.tests = list(reach[path][str(index + 1)])
                yield mistake
            if drawn == count:
                break


def run_tests(arguments: str) -> str:
    """Runs tests until one fails. Returns the first failing test, or ""."""
    command = ["./schedlab", "test", "-q", "-x", "-n", "0", "--tb=line", *shlex.split(arguments)]
    try:
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=STAGE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"timeout of {arguments}"
    if result.returncode == 0:
        return ""
    output = result.stdout + result.stderr
    if re.search(r"^\S+\.[ch]:\d+:\d+: error: ", output, re.MULTILINE):
        return "does not compile"
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1] if failed else f"status {result.returncode} of {arguments}"


def verdict_on(mistake: Mistake) -> str:
    """Returns "found by TEST", "survived", or why the mistake could not be planted."""
    try:
        with planted(mistake):
            failed = (run_tests(arguments) for arguments in mistake.tests)
            return next((f"found by {test}" for test in failed if test), "survived")
    except LookupError as error:
        return f"not planted: {error}"


@click.group()
def main() -> None:
    """Plant mistakes, and see which tests find them."""


@main.command("draw")
@click.argument("reach", type=click.Path(exists=True, path_type=Path))
@click.option("--seed", type=int, default=38)
def draw_command(reach: Path, seed: int) -> None:
    """Print a list of drawn mistakes."""
    drawn = draw(json.loads(reach.read_text()), seed)
    click.echo(as_yaml(drawn), nl=False)


@main.command("try")
@click.argument("numbers", nargs=-1)
def try_command(numbers: tuple[str, ...]) -> None:
    """Run the tests of mistakes that have no verdict, or of those named."""
    mistakes = read_list()
    header = LIST_FILE.read_text().partition("\n- ")[0]
    for mistake in mistakes:
        if mistake.number in numbers or (not numbers and mistake.verdict == NOT_RUN):
            mistake.verdict = verdict_on(mistake)
            click.echo(f"{mistake.number}: {mistake.verdict}")
            LIST_FILE.write_text(f"{header}\n{as_yaml(mistakes)}")


if __name__ == "__main__":
    main()


_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
    ast.And: (" and ", " or "),
    ast.Or: (" or ", " and "),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
}
_REMOVABLE = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)
_NOT_RUN = ("annotation", "returns", "decorator_list", "args")
"""Fields whose lines do not count as executed by a test."""

_Edit = tuple[int, int, int, str]
"""Replaces a range of characters in a line, given by its index, by the text."""


def python_mutants(source: str) -> Iterator[tuple[int, str]]:
    """Yields the index of each mutable line within a function, and the changed line."""
    lines = source.splitlines()
    module = ast.parse(source)
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    outermost = [f for f in functions if f.col_offset in (0, 4)]
    edits = {edit for f in outermost for node in _executed(f) for edit in _Edits(lines).of(node)}
    for index, start, end, text in sorted(edits):
        yield index, lines[index][:start] + text + lines[index][end:]


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all nodes below one, except within formatted strings, whose positions Python 3.11 does not know."""
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from _executed(child)


class _Edits:
    """Finds the possible changes of each node of a source."""

    def __init__(self, lines: list[str]) -> None:
        """Prepares for the lines of a source."""
        self._lines = lines

    def of(self, node: ast.AST) -> Iterator[_Edit]:
        """Yields the changes of a node within one line."""
        if isinstance(node, ast.Compare):
            yield from self._replace_operator(node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            yield from self._replace_operator(node.values[0], node.op, node.values[1])
        elif isinstance(node, ast.BinOp):
            yield from self._replace_operator(node.left, node.op, node.right)
        elif isinstance(node, ast.Constant):
            yield from self._constant_edits(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._replace(node, self._source_text(node.operand))
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield from self._replace(node.test, f"not ({self._source_text(node.test)})")
        elif isinstance(node, ast.Return) and node.value:
            yield from self._replace(node, "return None")
        elif isinstance(node, _REMOVABLE) or self._is_effect(node):
            yield from self._replace(node, "pass")
        elif isinstance(node, ast.Call):
            yield from self._without_keywords(node)

    def _constant_edits(self, node: ast.Constant) -> Iterator[_Edit]:
        if isinstance(node.value, bool):
            yield from self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            yield from self._replace(node, str(node.value + 1))
            yield from self._replace(node, str(node.value - 1))

    @staticmethod
    def _is_effect(node: ast.AST) -> bool:
        """True for a call for its effect, or a change of an object."""
        if isinstance(node, ast.Assign):
            return isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)

    def _span(self, node: ast.AST) -> tuple[int, int, int] | None:
        """Returns the index of the node's single line, its first column and the column after its last."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", -1)
        if first != last:
            return None
        line = self._lines[first - 1].encode()
        ends = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0))
        start, end = (len(line[:offset].decode()) for offset in ends)
        return first - 1, start, end

    def _source_text(self, node: ast.AST) -> str:
        span = self._span(node)
        return self._lines[span[0]][span[1] : span[2]] if span else ""

    def _replace(self, node: ast.AST, text: str) -> Iterator[_Edit]:
        """Yields the edit that replaces a node by the text, if the node is within one line."""
        if span := self._span(node):
            yield (*span, text)

    def _replace_operator(
        self, left: ast.AST, operator: ast.AST, right: ast.AST
    ) -> Iterator[_Edit]:
        """Yields another operator between two operands."""
        one, other = self._span(left), self._span(right)
        if one and other and one[0] == other[0] and type(operator) in _OPERATORS:
            before, after = _OPERATORS[type(operator)]
            text = self._lines[one[0]][one[2] : other[1]]
            yield one[0], one[2], other[1], text.replace(before, after, 1)

    def _without_keywords(self, call: ast.Call) -> Iterator[_Edit]:
        """Yields calls with one argument removed, if another argument precedes it in the line."""
        arguments: list[ast.AST] = [*call.args, *call.keywords]
        for previous, argument in itertools.pairwise(arguments):
            one, other = self._span(previous), self._span(argument)
            named = isinstance(argument, ast.keyword) and argument.arg
            if named and one and other and one[0] == other[0]:
                yield one[0], one[2], other[2], ""
