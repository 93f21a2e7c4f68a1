# SPDX-License-Identifier: MIT
"""Generates the parts of the gallery's pages between marks; handwritten text remains."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from schedlab import trace
from schedlab.base.display.numbers import fitting, three_digits
from schedlab.base.toolchain.policies import known_policies
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT
from schedlab.report.specifications import for_paper
from schedlab.sweep.objectives import parse
from schedlab_tools.documents.gallery import trials
from schedlab_tools.documents.gallery.code import with_marks
from schedlab_tools.documents.gallery.extremes import Contest, extremes
from schedlab_tools.documents.gallery.pictures import picture
from schedlab_tools.documents.marked_parts import with_marked, write

FOLDER = ROOT / "docs" / "gallery"
INDEX = FOLDER / "README.md"
TRACES = FOLDER / "traces.txt"
"""Hashes of the traces that the pictures were drawn from."""
_LINES = re.compile(r"<!-- lines\n(.*?)\n-->", re.DOTALL)
_WIDTH = 120
_NOWHERE = {
    "good": "In no contest of the sweep is it surely better than the typical policy.",
    "fails": "In no contest of the sweep is it surely worse than the typical policy.",
}


@dataclass(frozen=True)
class Shown:
    """One side of a policy: a contest, or None if it never differs from the typical policy."""

    policy: str
    side: str
    """"good" or "fails"."""
    contest: Contest | None

    @property
    def file(self) -> Path:
        """The file of its picture."""
        return FOLDER / f"{self.policy}-{self.side}.svg"


def page_of(policy: str) -> Path:
    """Returns the file of a policy's page."""
    return FOLDER / f"{policy}.md"


def files() -> tuple[Path, ...]:
    """Returns all files that `make` writes."""
    pictures = (Shown(name, side, None).file for name in trials.policies() for side in _NOWHERE)
    return (INDEX, TRACES, *map(page_of, trials.policies()), *pictures)


def make() -> None:
    """Runs the sweep, and writes pages and pictures. Raises SchedlabError if a page lacks its marks, or a run fails."""
    with TemporaryDirectory(prefix="schedlab-") as temporary:
        runs_folder = Path(temporary)
        contests = trials.run(runs_folder / "sweep")
        shown = [side for name in trials.policies() for side in _sides(contests, name)]
        needed = {
            (side.contest.workload, side.contest.cpus, policy)
            for side in shown
            if side.contest
            for policy in (side.policy, side.contest.typical)
        }
        trace_folders = trials.traces(runs_folder / "traces", needed)
        _draw(shown, trace_folders)
        write(TRACES, trials.hashes_text(trace_folders))
    for name in trials.policies():
        both = {side.side: side for side in shown if side.policy == name}
        write(
            page_of(name), page(page_of(name).read_text("utf-8"), name, both["good"], both["fails"])
        )
    write(INDEX, with_marked(INDEX.read_text("utf-8"), "policies", _table(shown)))


def make_code() -> None:
    """Writes the code's part of all pages, which needs no run. Raises SchedlabError as `code` does."""
    for name in trials.policies():
        text = page_of(name).read_text("utf-8")
        write(page_of(name), with_marked(text, "code", code(text, name)))


def page(text: str, policy: str, good: Shown, fails: Shown) -> str:
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


def _sides(contests: Sequence[Contest], policy: str) -> tuple[Shown, Shown]:
    sides = extremes(contests, policy)
    return Shown(policy, "good", sides.best), Shown(policy, "fails", sides.worst)


def _draw(shown: Sequence[Shown], traces: dict[tuple[str, int, str], Path]) -> None:
    from schedlab.report.drawing import svg

    for side in shown:
        contest = side.contest
        if not contest:
            side.file.unlink(missing_ok=True)
            continue
        policy_trace, rival = (
            trace.read(traces[contest.workload, contest.cpus, policy])
            for policy in (side.policy, contest.typical)
        )
        write(
            side.file,
            svg(for_paper(picture(side.side, contest, side.policy, policy_trace, rival))) + "\n",
        )


def _source(policy: str) -> str:
    known = known_policies()[policy]
    return f"{known.source}. [policies/{policy}.c](../../policies/{policy}.c) has all of it."


def _summary(shown: Shown) -> str:
    contest = shown.contest
    if not contest:
        return f"\n{_NOWHERE[shown.side]}\n"
    workload = f"[{Path(contest.workload).stem}](../../{contest.workload})"
    words = (
        f"All policies by {parse(contest.measure).title}, and below it what {shown.policy} and "
        f"{contest.typical} did with the processes."
    )
    figures = _figures(shown.policy, contest)
    return "\n\n".join(
        (
            f"\n![{words}]({shown.file.name})",
            _wrapped(f"Under {workload} on {_cpus(contest.cpus)}: {figures}."),
            f"    {_command(shown.policy, contest)}\n",
        )
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _figures(policy: str, contest: Contest) -> str:
    objective = parse(contest.measure)
    policy_mean, usual = contest.mean(policy), contest.mean(contest.typical)
    shown = fitting(objective.quantity, max(policy_mean, usual))
    unit = f" {shown.unit}" if shown.unit else ""
    place = sorted(map(contest.mean, contest.values)).index(policy_mean) + 1
    return (
        f"{objective.title}, {three_digits(policy_mean * shown.factor)}{unit}, where the policy in the middle, "
        f"`{contest.typical}`, has {three_digits(usual * shown.factor)}{unit}; "
        f"place {place} of {len(contest.values)}"
    )


def _command(policy: str, contest: Contest) -> str:
    return (
        f"./schedlab run --machine sim --workload {contest.workload}"
        f" --policy {policy},{contest.typical} --cpus {contest.cpus}"
    )


def _table(shown: Sequence[Shown]) -> str:
    return "\n" + "\n".join(_rows(shown)) + "\n"


def _rows(shown: Sequence[Shown]) -> Iterator[str]:
    yield "| policy | idea | at its best | at its worst |"
    yield "|---|---|---|---|"
    for good, fails in zip(shown[::2], shown[1::2], strict=True):
        texts = (_in_short(side) for side in (good, fails))
        idea = known_policies()[good.policy].meaning
        yield f"| [`{good.policy}`]({good.policy}.md) | {idea} | {' | '.join(texts)} |"


def _in_short(shown: Shown) -> str:
    contest = shown.contest
    if not contest:
        return "nowhere apart"
    factor = contest.factor(shown.policy)
    times = f"{three_digits(factor)} times" if factor > 1 else f"1/{three_digits(1 / factor)} of"
    place = f"`{Path(contest.workload).stem}`, {_cpus(contest.cpus)}"
    return f"{parse(contest.measure).title} {times} the middle's: {place}"


def _cpus(count: int) -> str:
    return "1 CPU" if count == 1 else f"{count} CPUs"
