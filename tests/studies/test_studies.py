# SPDX-License-Identifier: MIT
"""The studies: what they print is what we have, what is ideal, and what does not fit together.

Without the studies' texts and the baselines beside them (SCHEDLAB_STUDIES names the folder), the
tests that compare with them are skipped.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from statistics import fmean

import pytest

from schedlab.errors import FileRefused
from schedlab.metrics import jain_index
from schedlab.paths import ROOT
from schedlab.studies import (
    Figure,
    all_published,
    frame,
    published,
    read_figures,
    select,
)
from schedlab.studies.figures import COLUMNS
from schedlab.studies.ideal import (
    CPUS,
    LOTTERY_GROUPS,
    SLEEPER_TICKS,
    STUDY_3_WORK,
    TIMING_TESTS,
    completion,
    ideal_batch,
    ideal_completion,
    ideal_group_shares,
    ideal_mixed_benchmark,
    ideal_told,
    least_mean_turnaround,
    shared_mean_turnaround,
    ticket_shares,
    unmeetable,
)
from schedlab.studies.pack import Contradiction, Statement, studies
from study_texts import (
    TABLES,
    Measured,
    measured_by_others,
    numbers,
    paragraphs,
    said,
    section,
)


@pytest.mark.parametrize(("study", "table"), TABLES)
def test_tables_are_those_of_the_study(study: int, table: int) -> None:
    """Each cell as it is printed, none left out, none made up."""
    ours = {(each.row, each.column, each.quantity): each.text for each in published(study, table)}
    assert ours
    assert ours == TABLES[study, table](table)


def texts_of(figures: list[Figure]) -> dict[tuple[int, str, str, str], str]:
    """Those that no table holds."""
    return {
        (each.study, each.place, each.row, each.column): each.text
        for each in figures
        if each.source == "study" and not each.place.startswith("table")
    }


def of_texts() -> list[Figure]:
    """The figures of those studies whose texts are kept: of others they are as they are cited."""
    cited = {study.number for study in studies() if study.facts.get("text") == "cited"}
    return [each for each in all_published() if each.study not in cited]


def test_numbers_in_the_texts() -> None:
    """Each one is there, and we have none that is not."""
    assert texts_of(of_texts()) == said()


def others(figures: list[Figure]) -> Measured:
    """Those that the texts do not hold."""
    return {
        (each.study, each.place, each.row, each.column, each.quantity, each.source): each.text
        for each in figures
        if each.source != "study"
    }


def test_what_the_authors_and_we_measured() -> None:
    """All of it, as the baselines tell it."""
    assert others(of_texts()) == measured_by_others()


def test_a_wrong_number_is_found() -> None:
    """Each figure, changed, is missed at its place: the tests above can fail for every one."""
    tables = {key: TABLES[key](key[1]) for key in TABLES}
    texts, measured = said(), measured_by_others()
    for each in of_texts():
        wrong = replace(each, text=each.text + "7")
        for figure, right in ((each, True), (wrong, False)):
            if figure.source != "study":
                ((place, text),) = others([figure]).items()
                agrees = measured.get(place) == text
            elif figure.place.startswith("table"):
                cells = tables[figure.study, int(figure.place.removeprefix("table "))]
                agrees = cells.get((figure.row, figure.column, figure.quantity)) == figure.text
            else:
                ((said_at, text),) = texts_of([figure]).items()
                agrees = texts.get(said_at) == text
            assert agrees == right, figure


# The data file, without the texts.


def test_the_file_is_in_order() -> None:
    """All studies, all kinds, all sources; CPUs where the place says so."""
    figures = all_published()
    assert {each.study for each in figures} == {1, 2, 3, 4, 5, 6}
    assert {each.kind for each in figures} == {"measurement", "expectation", "claim", "setting"}
    assert {each.source for each in figures} == {"study", "authors", "rerun"}
    for each in figures:
        named = re.fullmatch(r"(\d) CPUs?", each.column)
        assert each.cpus == (int(named[1]) if named else None), each
    assert {(each.row, each.text) for each in figures if not each.finished} == {
        ("Low Process Count", "not finished"),
        ("Starvation Check", "not reached"),
        ("priority 0", "infty"),
    }


def test_a_quantity_has_one_unit_in_a_place() -> None:
    """So that its values may be compared."""
    units = {
        (each.study, each.place, each.row, each.quantity): each.unit for each in all_published()
    }
    for each in all_published():
        assert units[each.study, each.place, each.row, each.quantity] == each.unit


def test_policies_are_ours() -> None:
    """Each is a policy of ours or one of its presets; all that is measured has one."""
    names = set()
    for path in [*(ROOT / "policies").glob("*.c"), *(ROOT / "policies/studies").glob("*.c")]:
        policy = path.stem.removeprefix("study-")
        found = re.search(
            r"struct preset \w+_presets\[\] = \{(.*?)^\};", path.read_text(), re.M | re.S
        )
        presets = re.findall(r'^    \{"([\w-]+)",', found[1], re.M) if found else []
        names |= {policy} | {f"{policy}:{preset}" for preset in presets}
    for each in all_published():
        if each.policy is not None:
            assert each.policy in names, each
        else:
            assert each.kind == "setting", each


def test_study_1_measures_shares_on_one_to_five_cpus() -> None:
    """Tables 3 to 8. Columns add up to 100 %, except one: Low Process Count on 2 CPUs."""
    columns: dict[tuple[str, str], list[float]] = {}
    for each in select(study=1, quantity="share", kind="measurement", source="study"):
        columns.setdefault((each.place, each.column), []).append(each.value)
    assert len(columns) == 6 * 5
    sums = {place: sum(column) for place, column in columns.items()}
    assert sums.pop(("table 3", "2 CPUs")) == pytest.approx(93.1)
    assert all(99.5 <= total <= 100.5 for total in sums.values()), sums


def test_study_5_means_are_those_of_its_runs() -> None:
    """Table 6 is table 5, rounded to a hundredth."""
    for mean in published(5, 6):
        runs = [
            each.value
            for each in published(5, 5)
            if each.quantity == mean.quantity and each.row.startswith(mean.column)
        ]
        assert len(runs) == 3
        assert abs(fmean(runs) - mean.value) <= 0.005 + 1e-9


def test_select_and_frame() -> None:
    """The same figures, both ways."""
    table = frame()
    assert {"study", *COLUMNS, "text"} == set(table.columns)
    assert table.height == len(all_published())
    assert table["value"].null_count() == sum(not each.finished for each in all_published())
    assert select(study=9) == []
    (sleeper,) = select(study=4, place="section 4.3", quantity="sleep", kind="measurement")[:1]
    assert (sleeper.value, sleeper.decimals, sleeper.policy) == (20, 0, "rr:table-scan")
    (unfinished,) = (each for each in all_published() if each.text == "not reached")
    with pytest.raises(ValueError, match="not reached"):
        _ = unfinished.value


GOOD = ["table 3", "A", "1 CPU", "measurement", "share", "%", "50.4", "1", "", "study"]


@pytest.mark.parametrize(
    ("column", "text", "error"),
    [
        ("row", "", "row is missing"),
        ("unit", "", "unit is missing"),
        ("kind", "guess", "guess"),
        ("source", "hearsay", "hearsay"),
        ("value", "many", "many is not a number"),
        ("value", "-1", "-1 is not a number"),
        ("value", "1.", "is not a number"),
        ("value", "nan", "is not a number"),
        ("cpus", "0", "must be a CPU"),
    ],
)
def test_a_bad_line_is_an_error(column: str, text: str, error: str) -> None:
    """It names the line and what is wrong."""
    bad = dict(zip(COLUMNS, GOOD, strict=True)) | {column: text}
    with pytest.raises(ValueError, match=f"line 3: .*{error}"):
        read_figures(as_csv([[*GOOD[:2], "2 CPUs", *GOOD[3:]], list(bad.values())]), 1)


def test_a_bad_file_is_an_error() -> None:
    """Other columns, too few or too many cells, one place twice."""
    assert read_figures(as_csv([GOOD]), 1)[0].value == 50.4
    with pytest.raises(ValueError, match="the columns must be"):
        read_figures(as_csv([GOOD], COLUMNS[:-1]), 1)
    for cells in (GOOD[:-1], [*GOOD, "more"]):
        with pytest.raises(ValueError, match="line 2: 10 columns"):
            read_figures(as_csv([cells]), 1)
    with pytest.raises(ValueError, match="line 3: this place"):
        read_figures(as_csv([GOOD, GOOD]), 1)


def as_csv(rows: list[list[str]], heading: tuple[str, ...] = COLUMNS) -> io.StringIO:
    file = io.StringIO()
    csv.writer(file).writerows([heading, *rows])
    file.seek(0)
    return file


def test_drawings_have_their_points() -> None:
    """Study 1 draws one to five CPUs, study 4 two to forty processes, one point for each."""
    lengths = {(1, 1): 5, (1, 2): 5, (1, 3): 5, (3, 3): 3, (4, 9): 20, (4, 10): 20}
    drawn = {
        (study.number, int(drawing["figure"])): drawing
        for study in studies()
        for drawing in study.facts.get("drawings", ())
    }
    for (study, number), drawing in drawn.items():
        for line in drawing.get("series", ()):
            points = [
                each
                for each in select(
                    study=study,
                    place=line["place"],
                    kind="measurement",
                    quantity=drawing["quantity"],
                    source=line.get("source", "study"),
                )
                if line.get("row", each.row) == each.row
                and line.get("column", each.column) == each.column
            ]
            assert len(points) == lengths[study, number], (drawing, line)
            assert len({(each.row, each.column) for each in points}) == len(points)
    assert {where for where, drawing in drawn.items() if "series" in drawing} == set(lengths)


# What is ideal.


def test_completion() -> None:
    """The longest, or all of the work."""
    assert completion([], 3) == 0
    assert completion([8.6] * 10, 1) == pytest.approx(86)
    assert completion([3, 3, 3], 2) == 4.5
    assert completion([9, 1, 1], 2) == 9
    with pytest.raises(ValueError, match="a CPU"):
        completion([1], 0)
    with pytest.raises(ValueError, match="below 0"):
        completion([-1], 1)


def test_least_mean_turnaround_is_the_least() -> None:
    """Of all ways to assign few processes to CPUs, each CPU's shortest first."""
    for work in ([1, 2, 3], [5, 1, 1, 4], [2, 2, 2, 7, 1]):
        for cpus in (1, 2, 3):
            best = min(
                sum(turnarounds(work, choice, cpus)) / len(work)
                for choice in product(range(cpus), repeat=len(work))
            )
            assert least_mean_turnaround(work, cpus) == pytest.approx(best)
    with pytest.raises(ValueError, match="must be a process"):
        least_mean_turnaround([], 1)


def turnarounds(work: list[int], choice: tuple[int, ...], cpus: int) -> list[float]:
    """If process i runs on CPU choice[i]."""
    ends = []
    for cpu in range(cpus):
        now = 0.0
        for each in sorted(
            each for each, chosen in zip(work, choice, strict=True) if chosen == cpu
        ):
            now += each
            ends.append(now)
    return ends


def test_shared_mean_turnaround() -> None:
    """By hand: 1 and 2 on a CPU end at 2 and 3; on two, each has its own."""
    assert shared_mean_turnaround([1, 2], 1) == 2.5
    assert shared_mean_turnaround([1, 2], 2) == 1.5
    assert shared_mean_turnaround([4] * 3, 2) == 6
    with pytest.raises(ValueError, match="must be a process"):
        shared_mean_turnaround([], 1)


def test_no_published_time_is_better_than_ideal() -> None:
    """Under no scheduler of study 1, on one to five CPUs."""
    for table in (1, 2):
        times = [each for each in published(1, table) if each.quantity == "completion"]
        assert {each.row for each in times} == {test.row for test in TIMING_TESTS[table]}
        for each in times:
            assert each.cpus is not None
            # The size of the work is taken from the 86 ticks of one cell, which hold some overhead:
            # under priorities the same work took 84. And the study tells whole ticks.
            least = ideal_told(table, each.row, each.cpus) * 84 / 86
            assert each.value + 0.5 >= least, each
    assert ideal_completion(1, "CPU-heavy", 1) == pytest.approx(86)
    assert ideal_completion(1, "Starvation Check", 1) == pytest.approx(43.0, abs=0.03)
    assert ideal_completion(1, "I/O-bound", 5) == 20
    assert ideal_completion(2, "I/O-bound", 1) == pytest.approx(22.5)
    assert {ideal_told(2, "Mixed Load", cpus) for cpus in CPUS} == {50}
    mixed = [ideal_completion(1, "Mixed Load", cpus) for cpus in CPUS]
    assert mixed == pytest.approx([107.5, 53.75, 50, 50, 50])
    with pytest.raises(KeyError):
        ideal_completion(1, "Nothing", 1)


def test_tickets_are_what_the_study_expects() -> None:
    """Its expectations are parts of all tickets, cut off or rounded to whole percents."""
    for table in LOTTERY_GROUPS:
        shares = ticket_shares(table)
        for each in select(study=1, place=f"table {table}", kind="expectation"):
            assert abs(each.value - 100 * shares[each.row]) < 1


@pytest.mark.parametrize(("table", "cpus"), list(product(LOTTERY_GROUPS, CPUS)))
def test_ideal_shares_of_groups(table: int, cpus: int) -> None:
    """They add up; no process has more than a CPU; one that can have what its tickets say does."""
    shares = ideal_group_shares(table, cpus)
    assert sum(shares.values()) == pytest.approx(1)
    used = min(cpus, sum(each.processes * each.demand for each in LOTTERY_GROUPS[table]))
    for each in LOTTERY_GROUPS[table]:
        assert shares[each.row] * used <= each.processes * each.demand + 1e-9
    if cpus == 1 and table != 8:
        assert shares == pytest.approx(ticket_shares(table))


def test_what_cannot_be_met() -> None:
    """Tables 3, 4 and 6 on several CPUs, table 8 on all; 5 and 7 can be met."""
    off = {table: [cpus for cpus in CPUS if unmeetable(table, cpus)] for table in LOTTERY_GROUPS}
    assert off == {3: [3, 4, 5], 4: [5], 5: [], 6: [3, 4, 5], 7: [], 8: [1, 2, 3, 4, 5]}
    assert unmeetable(6, 5)["A+B (50+50)"] == pytest.approx((81, 40))
    assert ideal_group_shares(8, 1, all_compute=True) == pytest.approx(ticket_shares(8))


def test_study_3_and_4_ideals() -> None:
    """What was measured is not better, and the sleeper of MLFQ is ideal."""
    batch = ideal_batch(40, STUDY_3_WORK, 3)
    for each in published(3, 3):
        assert each.column != "CPU-bound" or each.value < batch.throughput
    turnaround = [each for each in published(3, 1) if each.column == "CPU-bound"]
    assert len(turnaround) == 3
    assert all(batch.least_turnaround < each.value for each in turnaround)
    assert batch.least_turnaround < batch.shared_turnaround
    assert jain_index([STUDY_3_WORK] * 40) == pytest.approx(1)
    for each in select(study=4, source="authors"):
        interactive, _ = ideal_mixed_benchmark(int(each.row.split()[0]))
        assert each.value > interactive
    (mlfq,) = select(study=4, place="section 4.3", quantity="sleep", kind="measurement")[1:]
    assert mlfq.value == SLEEPER_TICKS
    with pytest.raises(ValueError, match="must be"):
        ideal_mixed_benchmark(0)


# What does not fit together.


CONTRADICTIONS = [(study.number, each) for study in studies() for each in study.contradictions]


def test_contradictions_are_told_once() -> None:
    """Each has a name, a reason, and two places or more; one of number theory needs no second."""
    names = Counter((study, each.name) for study, each in CONTRADICTIONS)
    assert max(names.values()) == 1
    assert {study for study, _ in CONTRADICTIONS} == {1, 2, 3, 4, 5}
    for _, each in CONTRADICTIONS:
        assert each.reason.endswith(".")
        assert each.checked.endswith(".")
        assert len(each.statements) > 1 or each.name in ("not-drawn", "tickets-of-b")
        assert all(said.numbers or said.words for said in each.statements), each
    concerned = [each.name for _, each in CONTRADICTIONS if each.concerns("section 2.1")]
    assert concerned == ["mixed-what-takes-long"]


@pytest.mark.parametrize(
    ("study", "each"),
    CONTRADICTIONS,
    ids=[f"{study}-{each.name}" for study, each in CONTRADICTIONS],
)
def test_contradictions_stand_in_the_study(study: int, each: Contradiction) -> None:
    """All numbers and terms of a statement in one paragraph or one row of its place."""
    for statement in each.statements:
        assert stands(study, statement), statement
        changed = [*statement.numbers[:-1], "".join(statement.numbers[-1:]) + "07"]
        assert not stands(study, replace(statement, numbers=tuple(changed)))


def stands(study: int, statement: Statement) -> bool:
    """Is that what the place says?"""
    kind, _, number = statement.place.partition(" ")
    if kind == "table":
        cells = [each for each in published(study, int(number)) if statement.row in ("", each.row)]
        return set(statement.numbers) <= {each.text for each in cells}
    return any(
        set(statement.numbers) <= numbers(text) and all(word in text for word in statement.words)
        for text in paragraphs(section(study, number))
    )


def cell(study: int, table: int, row: str, column: str) -> float:
    """Of a table with one quantity in a cell."""
    (found,) = (
        each for each in published(study, table) if (each.row, each.column) == (row, column)
    )
    return found.value


def test_reasons_of_study_3() -> None:
    """The arithmetic that the reasons tell."""
    gains = {
        (column, other): 100 * (cell(3, 3, "MLFQ", column) / cell(3, 3, other, column) - 1)
        for column in ("IO-bound", "Mixed")
        for other in ("RR", "Lottery")
    }
    assert {key: round(gain) for key, gain in gains.items()} == {
        ("IO-bound", "RR"): 143,
        ("IO-bound", "Lottery"): 11,
        ("Mixed", "RR"): 198,
        ("Mixed", "Lottery"): 23,
    }
    claims = {
        (each.column, each.row.removeprefix("MLFQ over ")): each.value
        for each in select(study=3, place="section 5.3")
    }
    assert all(abs(claims[key] - gains[key]) > 9 for key in gains)
    assert cell(3, 4, "RR", "Mixed") / cell(3, 4, "MLFQ", "Mixed") == pytest.approx(1.9, abs=0.01)
    too_long = {
        (row, column)
        for row in ("RR", "Lottery", "MLFQ")
        for column, processes in (("CPU-bound", 40), ("IO-bound", 40), ("Mixed", 50))
        if cell(3, 1, row, column) > processes / cell(3, 3, row, column)
    }
    assert too_long == {
        ("RR", "IO-bound"),
        ("Lottery", "IO-bound"),
        ("Lottery", "Mixed"),
        ("MLFQ", "Mixed"),
    }
    chances = [(1 - 1 / n) ** n for n in (2, 10, 1000)]
    assert chances == sorted(chances) and chances[-1] < 1 / math.e < 0.38
    most = {"throughput", "fairness"}
    best = Counter(
        (max if cells[0].quantity in most else min)(cells, key=lambda each: each.value).row
        for table in range(1, 6)
        for column in ("CPU-bound", "IO-bound", "Mixed")
        if (cells := [each for each in published(3, table) if each.column == column])
    )
    assert best["MLFQ"] == 6 and best.total() == 15


def test_reasons_of_the_others() -> None:
    """The arithmetic that the reasons tell."""
    times = {
        (each.place, each.row): each.value
        for each in select(study=2, kind="measurement")
        if each.column == "average"
    }
    assert times["section 3", "Switch overhead"] / 500 == pytest.approx(0.396)
    assert times["section 5", "Switch overhead"] / 200 == pytest.approx(0.380)
    assert times["section 3", "CPU-heavy"] * 250 / 200 == pytest.approx(55)
    for table in (1, 2):
        ticks = {
            (each.row, each.cpus): each.value
            for each in published(1, table)
            if each.quantity == "completion"
        }
        slower = {row for row, _ in ticks if ticks[row, 5] > ticks[row, 1]}
        assert slower == {"Switch Overhead", "I/O-bound", "Process Creation", "Low Process Count"}
    longer = sorted(ticks[row, 5] / ticks[row, 1] for row in slower)
    assert [round(100 * each) for each in (longer[0], longer[-1])] == [163, 179]
    authors = {(each.row, each.column): each.value for each in select(study=4, source="authors")}
    for policy, factor in (("MLFQ", 3.6), ("RR", 13.0)):
        few, many = (authors[f"{n} CPU-bound", f"{policy} interactive"] for n in (2, 40))
        assert many / few == pytest.approx(factor, abs=0.05)
    tickets = [round(100 * share, 1) for share in ticket_shares(5).values()]
    assert tickets == [50.5, 33.7, 15.8]
    mean = {each.column: each.value for each in published(5, 6) if each.quantity == "throughput"}
    assert max(mean.values()) < 1.01 * min(mean.values())
    runs = {each.row: each.value for each in published(5, 5) if each.quantity == "throughput"}
    assert mean["WRR"] - mean["CFS"] == pytest.approx(0.97)
    assert (mean["WRR"] - mean["CFS"]) / mean["CFS"] == pytest.approx(0.0005, abs=5e-5)
    assert runs["WRR 1"] - runs["WRR 2"] == pytest.approx(8.24)
    latency = {each.row: each.value for each in published(5, 5) if each.quantity == "mean latency"}
    assert all(0.98 < runs[row] * latency[row] / 1000 < 1.01 for row in runs)


def test_every_shared_run_of_study_5_is_told() -> None:
    """Which runs of two schedulers have the same throughput."""
    runs = [(each.row, each.text) for each in published(5, 5) if each.quantity == "throughput"]
    same = [{one, other} for (one, a), (other, b) in combinations(runs, 2) if a == b]
    assert same == [{"CFS 2", "WRR 2"}, {"CFS 3", "WRR 3"}]


WRONG = {
    "name: [": "expected",
    "- name: a\n  sort: rumour\n  statements: []\n  reason: b.": "rumour is no sort",
    "- name: a": "'sort'",
    "- a": "expected a list of contradictions",
    "- name: a\n  sort: number\n  statements: []\n  reasons: b.": "reasons",
    "5": "expected a list",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused(text: str, tmp_path: Path) -> None:
    """With its name, and what is wrong."""
    folder = tmp_path / "6"
    folder.mkdir()
    (folder / "contradictions.yaml").write_text(text)
    (folder / "study.yaml").write_text("- citation")
    (study,) = studies(tmp_path)
    with pytest.raises(FileRefused, match=rf"contradictions\.yaml: .*{WRONG[text]}"):
        _ = study.contradictions
    with pytest.raises(FileRefused, match=r"study\.yaml: expected a citation"):
        _ = study.facts
