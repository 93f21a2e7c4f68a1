# SPDX-License-Identifier: MIT
"""From a study's page.md, notes.md and tables.yaml to a page of a report.

page.md is Markdown with slots, in Jinja's language. What comes before its first heading is the
lead. notes.md has texts that stand in several places, as Jinja's macros: `{{ notes.constant() }}`.
A slot calls the study's queries by their names:

    {{ turnaround('Mixed', 'MLFQ') | to(1) }}      a number with so many decimals
    {{ figure('table 1', 'MLFQ', 'Mixed') }}       as it was published
    {% call known() %} … {% endcall %}             what is missing of the numbers, in place of the text
    {% if holds('hogs_had_ended') %}               a predicate
    {% if is_known('turnaround', 'Mixed', 'RR') %} is there such a number?
    {{ show('study-3-inversion') }}                a table or a picture
    {{ doubts('table 1') }}                        what does not fit together there
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2

from schedlab.errors import FileRefused
from schedlab.files.kept import read_text
from schedlab.report import trials
from schedlab.report.markup import code, literal
from schedlab.report.model import Block, Chart, Page, Section, Table, Text
from schedlab.report.studies.contradiction_texts import Doubts
from schedlab.report.studies.course import CourseQueries
from schedlab.report.studies.data_charts import DescribedChart
from schedlab.report.studies.data_tables import DescribedTable
from schedlab.report.studies.described import refusing
from schedlab.report.studies.queries import Queries
from schedlab.report.study_tables import Measured
from schedlab.report.wording import counted, cpus, listed
from schedlab.runs.collection import Collection
from schedlab.studies import Figure
from schedlab.studies.pack import Study

_OPEN, _CLOSE = "\N{START OF TEXT}", "\N{END OF TEXT}"
_PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_HEADING = re.compile(r"^(#{1,2}) (.+)$", re.MULTILINE)
_TITLE = re.compile(r"\A---\ntitle: (.+)\n---\n")


_COMPILED: dict[tuple[str, str | None], CodeType] = {}
"""Of each text, and of the file that it is all of, for all reports of this process: the languages of their writers
differ in nothing that counts before a text is filled in."""


def page_of(study: Study, collection: Collection) -> Page | None:
    """None if none of its experiments was run, or if it has no page. Raises FileRefused."""
    if not study.page.exists() or not any(
        run.setup.experiment.startswith(f"s{study.number}-") for run in collection
    ):
        return None
    return _Writer(_queries_of(study.number)(study, collection)).page()


def _queries_of(number: int) -> type[Queries]:
    """The queries of the study's module, or those that all studies have if there is no such module."""
    name = f"schedlab.report.studies.study_{number}"
    try:
        found: type[Queries] = importlib.import_module(name).Queries
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return CourseQueries
    return found


class _Printed(str):
    """A published figure, as it was printed; `value` is for computing with it."""

    value: float


class _Unknown(float):
    """Stands in place of an answer of which something is missing: no text with it is kept."""

    def __getattr__(self, name: str) -> float:
        if name.startswith("__"):
            raise AttributeError(name)
        return math.nan


class _Writer:
    """Fills the slots of one page."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.blocks: list[Block] = []
        self.missing: list[dict[str, str]] = []
        """For each text that is being filled and may say what is missing: names, and why."""
        self.told = Doubts(queries.study)
        self._templates: dict[str, jinja2.Template] = {}
        self.language = jinja2.Environment(
            loader=jinja2.FileSystemLoader(queries.study.folder),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )  # Markdown: what others wrote comes through `literal` and `code`
        self.language.filters |= {
            "to": _to,
            "grouped": lambda value, decimals=0: f"{value:,.{decimals}f}",
            "listed": lambda words: listed(list(words)) if isinstance(words, list) else "",
            "spread_percent": _spread_percent,
            "ascending": _ascending,
            "counted": counted,
            "cpus": lambda counts: cpus([counts] if isinstance(counts, int) else counts),
            "between": lambda loop: {0: "", 1: " and "}.get(loop.revindex0, ", "),
            "literal": literal,
            "code": code,
            "lower_first": lambda words: words[:1].lower() + words[1:],
        }

    def page(self) -> Page:
        """Raises FileRefused for what no page can be made of."""
        path = self.queries.study.page
        text = read_text(path)
        title = _TITLE.match(text)
        if title is None:
            raise FileRefused(f"{path}: expected '---', 'title: …' and '---' as its first lines")
        # The lines before are kept, so that a message names the line of the file.
        body = "\n" * title[0].count("\n") + text[title.end() :]
        try:
            filled = self._template(body).render(self.names)
        except (jinja2.TemplateError, _NotAsked) as error:
            line = getattr(error, "lineno", None) or _line_of(error)
            where = getattr(error, "filename", None) or path
            raise FileRefused(f"{where}, line {line}: {error}") from None
        lead, *parts = _HEADING.split(filled)
        if not all(parts[0:1]) or _PLACE.search(lead):
            raise FileRefused(f"{path}: expected a lead without tables, and then headings")
        sections = self._sections(list(zip(parts[0::3], parts[1::3], parts[2::3], strict=True)))
        page = Page(
            f"study-{self.queries.study.number}",
            title[1],
            " ".join(lead.split()),
            tuple(sections),
        )
        trial = trials.of_study(self.queries.study)
        picture = next((each.name for each in page.blocks() if isinstance(each, Chart)), "")
        return replace(page, picture=picture, trials={trials.NAME: trial} if trial else {})

    def _sections(self, parts: list[tuple[str, str, str]]) -> Iterator[Section]:
        while parts:
            _, title, text = parts.pop(0)
            below = []
            while parts and parts[0][0] == "##":
                _, inner, inner_text = parts.pop(0)
                below.append(Section(inner, tuple(self._blocks(inner_text))))
            yield Section(title, tuple(self._blocks(text)), tuple(below))

    def _blocks(self, text: str) -> Iterator[Block]:
        for number, part in enumerate(_PLACE.split(text)):
            if number % 2:
                yield self.blocks[int(part)]
            elif part.strip():
                yield Text(part.strip("\n"))

    @cached_property
    def names(self) -> dict[str, Any]:
        """All that stands for something in a page; in the notes' texts, too."""
        own: dict[str, Any] = {
            name: self._asked(name, value) if callable(value) else value
            for name, value in self.queries_by_name.items()
        }
        own |= {
            "known": self._known,
            "note": lambda caller, tone="note": self._placed([Text(caller().strip(), tone)]),
            "holds": self._holds,
            "is_known": self._is_known,
            "show": self._show,
            "each": self._each,
            "doubts": lambda *places: self._placed(self.told.at(*places)),
            "doubts_named": lambda *names: self._placed(self.told.named(*names)),
            "other_doubts": lambda: self._placed(self.told.rest()),
        }
        notes = self.queries.study.notes
        if notes.exists():
            own["notes"] = self._template_of(read_text(notes), notes).make_module(own)
        return own

    @cached_property
    def queries_by_name(self) -> dict[str, Any]:
        """All that a page may name."""
        return {
            name: getattr(self.queries, name)
            for name in dir(self.queries)
            if not name.startswith("_")
        }

    def _query(self, name: str) -> Any:
        if name not in self.queries_by_name:
            raise _NotAsked(f"there is no query {name}")
        return self.queries_by_name[name]

    def _asked(self, name: str, query: Callable[..., Any]) -> Callable[..., Any]:
        """The query, whose answer a text can print."""

        def ask(*words: Any, **named: Any) -> Any:
            said = " ".join(str(each) for each in (name, *words))
            return self._printed(said, _answer(said, query, *words, **named))

        return ask

    def _printed(self, name: str, answer: Any) -> Any:
        if isinstance(answer, Figure):
            printed = _Printed(answer.text)
            printed.value = answer.value if answer.finished else math.nan
            return printed
        if isinstance(answer, Measured):
            found = {name.replace("_", " "): answer}
        elif isinstance(answer, dict) and _are_measured(answer.values()):
            found = answer
        else:
            return answer
        missing = {each: own.missing for each, own in found.items() if own.mean is None}
        if not missing:
            return answer.mean if answer is not found else {e: own.mean for e, own in found.items()}
        if not self.missing:
            raise _NotAsked(f"{name} may be missing: expected it between known() and endcall")
        self.missing[-1] |= missing
        return _Unknown("nan")

    def _known(self, caller: Callable[[], str]) -> str:
        """The text, or what is missing of its numbers."""
        self.missing.append({})
        blocks = len(self.blocks)
        text = caller().strip() + "\n"  # the line after endcall goes on below
        missing = self.missing.pop()
        if not missing:
            return text
        del self.blocks[blocks:]
        said = "; ".join(f"{name}: {how}" for name, how in missing.items())
        return f"*What was measured does not tell this ({said}).*\n"

    def _holds(self, name: str, *words: Any) -> bool:
        answer = _answer(name, self._query(name), *words)
        if not isinstance(answer, bool):
            raise _NotAsked(f"{name} is no predicate")
        return answer

    def _is_known(self, name: str, *words: Any) -> bool:
        """Is there such a number, or are there all of several?"""
        answer = _answer(name, self._query(name), *words)
        found = list(answer.values()) if isinstance(answer, dict) else [answer]
        return bool(found) and all(each.mean is not None for each in found)

    def _each(self, name: str, *words: Any, to: int = 1, part: str = "") -> str:
        """`20.4 (RR), 16.1 (Lottery) and 14.4 (MLFQ)`: a number of each of the study's schedulers."""
        ask = self._asked(name, self._query(name))
        return listed(
            [f"{_to(ask(*words, each), to)}{part} ({each})" for each in self.queries.schedulers]
        )

    def _show(self, name: str, *words: Any) -> str:
        """A table of tables.yaml, or what a query of this name draws."""
        if name in self.queries.study.tables:
            return self._placed(self._described(name))
        return self._placed(_answer(name, self._query(name), *words))

    def _described(self, name: str) -> list[Block]:
        with refusing(name, self.queries):
            if "chart" in self.queries.study.tables[name]:
                return [*DescribedChart(name, self.queries, self.filled).charts()]
            return [DescribedTable(name, self.queries, self.filled).table()]

    def filled(self, text: str, values: dict[str, Any]) -> str:
        """A text of tables.yaml."""
        return self._template(text).render(self.names | values)

    def _template(self, text: str) -> jinja2.Template:
        if text not in self._templates:
            self._templates[text] = self._template_of(text)
        return self._templates[text]

    def _template_of(self, text: str, path: Path | None = None) -> jinja2.Template:
        """Makes it; of a file, errors name that."""
        key = text, str(path) if path else None
        if key not in _COMPILED:
            _COMPILED[key] = self.language.compile(text, path.name if path else None, key[1])
        return jinja2.Template.from_code(
            self.language, _COMPILED[key], self.language.make_globals(None)
        )

    def _placed(self, found: Block | Iterable[Block]) -> str:
        blocks = [found] if isinstance(found, Text | Table | Chart) else list(found)
        first = len(self.blocks)
        self.blocks += blocks
        places = (f"{_OPEN}{first + number}{_CLOSE}" for number in range(len(blocks)))
        return "\n\n".join(places)


class _NotAsked(Exception):
    """A slot asks what cannot be answered there."""


def _are_measured(values: Iterable[Any]) -> bool:
    found = list(values)
    return bool(found) and all(isinstance(each, Measured) for each in found)


def _spread_percent(values: Any) -> float:
    """By how much the greatest is more than the least; missing values have no such figure."""
    if not isinstance(values, dict):
        return math.nan
    return float(100 * (max(values.values()) / min(values.values()) - 1))


def _ascending(values: Any) -> list[tuple[str, float]]:
    """Names and numbers, the least first; of what is missing, nothing."""
    return sorted(values.items(), key=lambda each: each[1]) if isinstance(values, dict) else []


def _answer(name: str, query: Callable[..., Any], *words: Any, **named: Any) -> Any:
    try:
        inspect.signature(query).bind(*words, **named)
    except TypeError as error:
        raise _NotAsked(f"{name}: {error}") from None
    return query(*words, **named)


def _to(value: float, decimals: int = 0) -> str:
    return f"{value:.{decimals}f}"


def _line_of(error: BaseException) -> int:
    """The line of the page in which it was raised: Jinja's code has its template's lines."""
    found, trace = 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
