# SPDX-License-Identifier: MIT
"""Generates the parts of the gallery's pages between marks; handwritten text remains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from schedlab import trace
from schedlab.base.display.numbers import three_digits, with_fitting_unit
from schedlab.base.toolchain.policies import known_policies
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT
from schedlab.report.specifications import paper_specification
from schedlab.sweep.objectives import parse_objective
from schedlab_tools.documents.gallery import trials
from schedlab_tools.documents.gallery.code import with_marks
from schedlab_tools.documents.gallery.extremes import PolicyComparison, extremes
from schedlab_tools.documents.gallery.pictures import draw_comparison
from schedlab_tools.documents.marked_parts import with_marked, wrapped, write

FOLDER = ROOT / "docs" / "gallery"
INDEX = FOLDER / "README.md"
TRACES = FOLDER / "traces.txt"
"""Hashes of the traces that the pictures were drawn from."""
_LINES = re.compile(r"<!-- lines\n(.*?)\n-->", re.DOTALL)
_WIDTH = 120
_NO_DIFFERENCE_TEXTS = {
    "good": "In no contest of the sweep is it surely better than the typical policy.",
    "fails": "In no contest of the sweep is it surely worse than the typical policy.",
}


@dataclass(frozen=True)
class PolicySide:
    """One side of a policy: a comparison, or None if it never differs from the typical policy."""

    policy: str
    side: str
    """"good" or "fails"."""
    comparison: PolicyComparison | None

    @property
    def file(self) -> Path:
        """The file of its picture."""
        return FOLDER / f"{self.policy}-{self.side}.svg"


def page_of(policy: str) -> Path:
    """Returns the file of a policy's page."""
    return FOLDER / f"{policy}.md"


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    pictures = (
        PolicySide(name, side, None).file
        for name in trials.policies()
        for side in _NO_DIFFERENCE_TEXTS
    )
    return (INDEX, TRACES, *map(page_of, trials.policies()), *pictures)


def make() -> None:
    """Runs the sweep, and writes pages and pictures. Raises SchedlabError if a page lacks its marks, or a run fails."""
    with TemporaryDirectory(prefix="schedlab-") as temporary:
        runs_folder = Path(temporary)
        comparisons = trials.run(runs_folder / "sweep")
        shown = [side for name in trials.policies() for side in _sides(comparisons, name)]
        needed = {
            (side.comparison.workload, side.comparison.cpus, policy)
            for side in shown
            if side.comparison
            for policy in (side.policy, side.comparison.typical)
        }
        trace_folders = trials.traces(runs_folder / "traces", needed)
        _draw(shown, trace_folders)
        write(TRACES, trials.hashes_text(trace_folders))
    for name in trials.policies():
        sides = {side.side: side for side in shown if side.policy == name}
        write(
            page_of(name),
            page(page_of(name).read_text("utf-8"), name, sides["good"], sides["fails"]),
        )
    write(INDEX, with_marked(INDEX.read_text("utf-8"), "policies", _table(shown)))


def make_code() -> None:
    """Writes the code's part of all pages, which needs no run. Raises SchedlabError as `code` does."""
    for name in trials.policies():
        text = page_of(name).read_text("utf-8")
        write(page_of(name), with_marked(text, "code", code(text, name)))


def page(text: str, policy: str, good: PolicySide, fails: PolicySide) -> str:
    """Returns a page's text with its parts regenerated. Raises SchedlabError if a mark is missing."""
    text = with_marked(text, "source", _source(policy))
    for side in (good, fails):
        text = with_marked(text, side.side, _summary(side))
    return with_marked(text, "code", code(text, policy))


def code(text: str, policy: str) -> str:
    """Returns the part `code` of a page, from the lines that it names and the policy's file.

    Raises SchedlabError if the page names no lines, or an unknown line.
    """
    named = _LINES.search(text)
    if not named:
        raise SchedlabError(f"the gallery's page of {policy} names no lines: <!-- lines")
    source = (ROOT / "policies" / f"{policy}.c").read_text("utf-8")
    return f"\n```c\n{with_marks(source, named[1].splitlines())}\n```\n"


def _sides(comparisons: Sequence[PolicyComparison], policy: str) -> tuple[PolicySide, PolicySide]:
    """Returns the best and the worst side of a policy."""
    sides = extremes(comparisons, policy)
    return PolicySide(policy, "good", sides.best), PolicySide(policy, "fails", sides.worst)


def _draw(shown: Sequence[PolicySide], traces: dict[tuple[str, int, str], Path]) -> None:
    """Draws the pictures of these sides."""
    from schedlab.report.drawing import render_svg

    for side in shown:
        comparison = side.comparison
        if not comparison:
            side.file.unlink(missing_ok=True)
            continue
        policy_trace, rival = (
            trace.read(traces[comparison.workload, comparison.cpus, policy])
            for policy in (side.policy, comparison.typical)
        )
        write(
            side.file,
            render_svg(
                paper_specification(
                    draw_comparison(side.side, comparison, side.policy, policy_trace, rival)
                )
            )
            + "\n",
        )


def _source(policy: str) -> str:
    """Returns the sentence that names the policy's origin and links to its file."""
    entry = known_policies()[policy]
    return f"{entry.source}. [policies/{policy}.c](../../policies/{policy}.c) has all of it."


def _summary(shown: PolicySide) -> str:
    """Returns the sentences about a side, with its picture."""
    comparison = shown.comparison
    if not comparison:
        return f"\n{_NO_DIFFERENCE_TEXTS[shown.side]}\n"
    workload = f"[{Path(comparison.workload).stem}](../../{comparison.workload})"
    caption = (
        f"All policies by {parse_objective(comparison.measure).title}, and below it what {shown.policy} and "
        f"{comparison.typical} did with the processes."
    )
    figures = _figures(shown.policy, comparison)
    return "\n\n".join(
        (
            f"\n![{caption}]({shown.file.name})",
            wrapped(f"Under {workload} on {_cpus(comparison.cpus)}: {figures}.", width=_WIDTH),
            f"    {_command(shown.policy, comparison)}\n",
        )
    )


def _figures(policy: str, comparison: PolicyComparison) -> str:
    """Returns the value and rank of the policy, and the value of the typical policy, in words."""
    objective = parse_objective(comparison.measure)
    policy_mean, usual = comparison.mean(policy), comparison.mean(comparison.typical)
    shown = with_fitting_unit(objective.quantity, max(policy_mean, usual))
    unit = f" {shown.unit}" if shown.unit else ""
    place = sorted(map(comparison.mean, comparison.values)).index(policy_mean) + 1
    return (
        f"{objective.title}, {three_digits(policy_mean * shown.factor)}{unit}, where the policy in the middle, "
        f"`{comparison.typical}`, has {three_digits(usual * shown.factor)}{unit}; "
        f"place {place} of {len(comparison.values)}"
    )


def _command(policy: str, comparison: PolicyComparison) -> str:
    """Returns the command that repeats the runs."""
    return (
        f"./schedlab run --machine sim --workload {comparison.workload}"
        f" --policy {policy},{comparison.typical} --cpus {comparison.cpus}"
    )


def _table(shown: Sequence[PolicySide]) -> str:
    """Returns the table of all policies."""
    return "\n" + "\n".join(_rows(shown)) + "\n"


def _rows(shown: Sequence[PolicySide]) -> Iterator[str]:
    """Yields the rows of the table."""
    yield "| policy | idea | at its best | at its worst |"
    yield "|---|---|---|---|"
    for good, fails in zip(shown[::2], shown[1::2], strict=True):
        texts = (_side_text(side) for side in (good, fails))
        idea = known_policies()[good.policy].meaning
        yield f"| [`{good.policy}`]({good.policy}.md) | {idea} | {' | '.join(texts)} |"


def _side_text(shown: PolicySide) -> str:
    """Returns a side in a few words, for the table."""
    comparison = shown.comparison
    if not comparison:
        return "nowhere apart"
    factor = comparison.factor(shown.policy)
    times = f"{three_digits(factor)} times" if factor > 1 else f"1/{three_digits(1 / factor)} of"
    place = f"`{Path(comparison.workload).stem}`, {_cpus(comparison.cpus)}"
    return f"{parse_objective(comparison.measure).title} {times} the middle's: {place}"


def _cpus(count: int) -> str:
    """Returns a number of CPUs in words."""
    return "1 CPU" if count == 1 else f"{count} CPUs"
