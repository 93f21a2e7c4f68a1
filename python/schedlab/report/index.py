# SPDX-License-Identifier: MIT
"""The first page: the findings, what is settled, how to read the charts,
what was run, and what failed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from schedlab.analysis.comparison.suites import Suite
from schedlab.base.display.markdown import code, literal
from schedlab.base.display.numbers import format_count
from schedlab.report.findings import Finding, compute_findings, rankable_suites, widely_run_policies
from schedlab.report.headlines import goals_chart, headline_charts
from schedlab.report.markup import TRIAL_PREFIX
from schedlab.report.model import Block, Cell, Column, Page, Row, Section, Table, Text, Trial
from schedlab.report.numbering import TONE_MEANINGS, TONE_SIGNS
from schedlab.report.trials import trial_of_suite
from schedlab.report.wording import (
    cpus_text,
    is_repeatable,
    listed,
    policy_label,
    provenance_text,
    ranges_text,
    read_prose,
    run_message,
)
from schedlab.runs.collection import Collection, ConfigurationRuns, Setup, StoredRun
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.proposals import is_proposal_label

PAGE_NAME = "index"


def make_page(collection: Collection, suites: Sequence[Suite]) -> Page:
    """Returns the first page of a report of these runs. `suites`: the suites that compare them."""
    failed = [run for run in collection if not run.succeeded]
    statements = compute_findings(suites)
    trials = dict(_finding_trials(collection, statements))
    return Page(
        name=PAGE_NAME,
        title="Which scheduler for what",
        lead=_summarize(collection, failed),
        sections=(
            _findings_section(statements, trials, suites),
            Section("What was run", (_runs_table(collection),)),
            Section("What failed", (_failures_text(failed),)),
            Section("How to read the tables", (Text(_guide_text(collection)),)),
        ),
        trials=trials,
    )


def _findings_section(
    statements: Sequence[Finding], trials: Mapping[str, Trial], suites: Sequence[Suite]
) -> Section:
    """Returns the differences; below them, what is settled and how to read the charts."""
    if not statements:
        return Section("Findings", (Text(read_prose("nothing-found"), "note"),))
    measured_findings = "\n".join(
        f"- {_finding_markdown(finding, trials)}" for finding in statements if finding.measure
    ) + _trials_note(trials)
    picture = goals_chart(suites)
    baseline = literal(policy_label(widely_run_policies(rankable_suites(suites))[0]))
    none = f"No policy is significantly better than {baseline} in a metric that tasks notice."
    other_findings = "\n\n".join(finding.text for finding in statements if not finding.measure)
    settled: tuple[Block, ...] = (Text(other_findings), *((picture,) if picture else ()))
    guide = Text(read_prose("read-charts", baseline=baseline))
    charts = tuple(headline_charts(suites))
    return Section(
        "Findings",
        (Text(measured_findings or none, "note"),),
        (
            Section("How much is settled", settled),
            Section("How to read the charts", (guide,)),
            *((Section("Charts", charts, is_row=True),) if charts else ()),
        ),
    )


def _finding_trials(
    collection: Collection, statements: Sequence[Finding]
) -> Iterator[tuple[str, Trial]]:
    for finding in statements:
        if finding.suite and finding.measure:
            trial = trial_of_suite(collection, finding.suite, finding.policies)
            if trial:
                yield finding.measure.name, trial


def _finding_markdown(finding: Finding, trials: Mapping[str, Trial]) -> str:
    """Returns a finding's sentence, and a link to its trial."""
    name = finding.measure.name if finding.measure else ""
    if name not in trials:
        return finding.text
    return f"{finding.text} [Try it]({TRIAL_PREFIX}{name})"


def _trials_note(trials: Mapping[str, Trial]) -> str:
    """Returns the note on the links to trials. It is a separate line, which other formats omit."""
    if not trials:
        return ""
    differs = listed(
        list(dict.fromkeys(text for trial in trials.values() for text in trial.differs))
    )
    note = f" Its runs differ in: {differs}." if differs else ""
    link = f"[Try it]({TRIAL_PREFIX}{next(iter(trials))})"
    return f"\n\n{link} opens both policies in a page that needs no installation.{note}"


def _summarize(collection: Collection, failed: Sequence[StoredRun]) -> str:
    """Returns the page's introduction: the numbers of runs, policies, workloads and failures."""
    setups = collection.repeated
    policies = format_count(count_policies(setups), "policy", "policies")
    workloads = format_count(len({setup.experiment for setup in setups}), "workload")
    ending = f"**{format_count(len(failed), 'run')} failed.**" if failed else "None failed."
    return (
        f"{format_count(len(collection), 'run')} of {workloads} under {policies} on"
        f" {cpus_text(setup.cpus for setup in setups)}. {ending} A policy or preset counts once, for"
        " all values of its tunables."
    )


def count_policies(setups: Iterable[Setup]) -> int:
    """Returns how many policies and presets ran. Values of tunables do not matter."""
    return len({setup.policy_title.partition(" ")[0] for setup in setups})


def _runs_table(collection: Collection) -> Table:
    """Returns a table with a row for each study, one for all proposals,
    and one for each other workload.
    """
    setups_by_heading: dict[str, list[ConfigurationRuns]] = {}
    for setup, repeated in collection.repeated.items():
        setups_by_heading.setdefault(_index_heading(setup.experiment), []).append(repeated)
    return Table(
        name="what-was-run",
        title="What was run",
        columns=(
            Column("what", align="left"),
            Column("workloads"),
            Column("policies"),
            Column("CPUs"),
            Column("seeds"),
            Column("machine", align="left"),
            Column("runs"),
            Column("failed"),
        ),
        rows=tuple(_configuration_row(name, setups) for name, setups in setups_by_heading.items()),
        data=pl.DataFrame(
            [
                {
                    "what": name,
                    "experiment": setup.setup.experiment,
                    "policy": setup.setup.policy_title,
                    "cpus": setup.setup.cpus,
                    "machine": setup.setup.machine,
                    "tick_ns": setup.setup.tick_ns,
                    "runs": len(setup.runs),
                    "failed": len(setup.failed),
                }
                for name, setups in setups_by_heading.items()
                for setup in setups
            ]
        ),
        caption="Seeds: the smallest and the largest number of seeds of one configuration.",
    )


def _index_heading(experiment: str) -> str:
    """Returns the heading of an experiment in the index: its study, the proposals, or its own
    name.
    """
    known_experiment = EXPERIMENTS.get(experiment)
    if is_proposal_label(experiment):
        return "Proposals of the studies"
    return f"Study {known_experiment.study}" if known_experiment else experiment


def _configuration_row(name: str, setups: Sequence[ConfigurationRuns]) -> Row:
    """Returns the row of a study or workload: configurations, policies, CPUs and runs."""
    runs = [run for setup in setups for run in setup.runs]
    failed = sum(not run.succeeded for run in runs)
    machines = sorted(
        {f"{run.setup.machine}{'' if is_repeatable(run) else ' (not repeatable)'}" for run in runs}
    )
    counts = [len(setup.runs) for setup in setups]
    seeds = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"
    return (
        Cell(name),
        Cell(str(len({setup.setup.experiment for setup in setups}))),
        Cell(str(count_policies(setup.setup for setup in setups))),
        Cell(ranges_text(setup.setup.cpus for setup in setups)),
        Cell(seeds),
        Cell(listed(machines)),
        Cell(f"{len(runs):,}"),
        Cell(str(failed), "failed" if failed else "muted"),
    )


def _failures_text(failed: Sequence[StoredRun]) -> Text:
    """Returns the note on failed runs."""
    if not failed:
        return Text("No run failed.")
    lines = [
        f"- {literal(run.setup.experiment)}, {literal(run.setup.policy_title)},"
        f" {cpus_text([run.setup.cpus])}, seed {run.seed}: **{literal(run.status)}**,"
        f" {code(run_message(run).splitlines()[0])}"
        for run in failed
    ]
    return Text(
        "A configuration with a failed run has no mean in this report: its cells show the"
        " failure. [All runs](#runs) gives each message in full.\n\n" + "\n".join(lines),
        "warning",
    )


def _guide_text(collection: Collection) -> str:
    """Returns the text that explains signs, intervals and provenance."""
    signs = listed([f"{sign} {TONE_MEANINGS[tone]}" for tone, sign in TONE_SIGNS.items()])
    setups = list(collection.repeated.values())
    return read_prose("guide", signs=signs, provenance=provenance_text(setups))
