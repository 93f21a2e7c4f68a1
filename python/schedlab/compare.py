# SPDX-License-Identifier: MIT
"""Two sets of runs, held against each other: what was different, and what came of it."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from schedlab.collection import Collection, Kept, Repeated
from schedlab.errors import WrongUsage
from schedlab.machines.base import TRACE_FILE
from schedlab.measures import GROUP_MEASURES, MEASURES, TOLD, Measure, measured, told
from schedlab.statistics import CONFIDENCE, Difference, difference, holm
from schedlab.units import format_time

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal[
    "same", "better", "worse", "changed", "perhaps", "chance", "one seed", "not repeatable"
]
"""`changed`: more than chance, in a metric without a direction. `perhaps`: it would be more than
chance, were it the only metric looked at. `one seed`: exact for that seed, and nothing is known of
others. `not repeatable`: one run each on a machine that varies by itself."""

DIMENSIONS = ("workload", "policy", "tunables", "CPUs", "tick", "machine")
"""Of a setup: in all of them, partners are alike, or on each side there is one value."""
Key = tuple[str, ...]
"""A setup's values, in the order of DIMENSIONS."""


@dataclass(frozen=True)
class Fact:
    """What the runs of both sides were made with: the values found, in the order of the runs."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return set(self.before) != set(self.after)


@dataclass(frozen=True)
class Row:
    """One metric of one matched setup, of the whole workload (group None) or of a group."""

    measure: Measure
    group: str | None
    found: Difference
    chance: float | None
    """The p-value, corrected for all metrics of the whole or of the group (Holm); None: one
    seed."""
    verdict: Verdict

    @property
    def improves(self) -> bool | None:
        """Does the mean go where it should? None: it has no direction, or stays."""
        if self.measure.better is None or not self.found.change:
            return None
        return (self.found.change < 0) == (self.measure.better == "lower")

    def to_dict(self) -> dict[str, Any]:
        """For JSON. Numbers are as stored: ns, parts of 1."""
        found = self.found
        return {
            "metric": self.measure.name,
            "title": self.measure.title,
            "group": self.group,
            "column": self.measure.column,
            "better": self.measure.better,
            "before": _estimate_dict(found.before),
            "after": _estimate_dict(found.after),
            "difference": found.change,
            "low": found.low,
            "high": found.high,
            "relative": found.relative,
            "p_value": found.chance,
            "p_value_permutations": found.permutation,
            "p_value_corrected": self.chance,
            "improves": self.improves,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Match:
    """Setups that are alike but for what is compared."""

    before: Repeated
    after: Repeated
    seeds: tuple[int, ...]
    """Of both sides, if `paired`; other seeds are left out."""
    paired: bool
    identical: bool
    """Each pair of runs has the same trace, byte for byte."""
    rows: tuple[Row, ...] = ()
    """None if a run failed or the traces are identical."""

    @property
    def failed(self) -> tuple[Kept, ...]:
        """Of the runs that would be compared."""
        runs = (*self.before.failed, *self.after.failed)
        return tuple(run for run in runs if not self.paired or run.seed in self.seeds)

    @property
    def left_out(self) -> tuple[int, ...]:
        """Seeds that only one side has, where others are paired."""
        if not self.paired:
            return ()
        seeds = {run.seed for run in (*self.before.runs, *self.after.runs)}
        return tuple(sorted(seeds - set(self.seeds)))


@dataclass(frozen=True)
class Comparison:
    """All that two sets of runs say about each other."""

    facts: tuple[Fact, ...]
    across: tuple[str, ...]
    """Dimensions in which partners differ."""
    matches: tuple[Match, ...]
    alone_before: tuple[Repeated, ...] = field(default=())
    alone_after: tuple[Repeated, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "confidence": CONFIDENCE,
            "facts": [
                {
                    "name": fact.name,
                    "before": fact.before,
                    "after": fact.after,
                    "differs": fact.differs,
                }
                for fact in self.facts
            ],
            "across": self.across,
            "setups": [_match_dict(match) for match in self.matches],
            "without_partner": {
                "before": [
                    dict(zip(DIMENSIONS, key_of(each), strict=True)) for each in self.alone_before
                ],
                "after": [
                    dict(zip(DIMENSIONS, key_of(each), strict=True)) for each in self.alone_after
                ],
            },
        }


def compare(before: Collection, after: Collection, metrics: Sequence[str] = ()) -> Comparison:
    """What is different. `metrics`: names of those wanted; none: all.

    Raises WrongUsage for an unknown metric, a setup with the same seed twice, and sides of which
    no setup matches any of the other.
    """
    check_metrics(metrics)
    sides = [_by_key(side) for side in (before, after)]
    across = across_dimensions(*sides)
    pairs = [
        (one, other)
        for (key, one), (partner, other) in product(sides[0].items(), sides[1].items())
        if _alike(key, partner, across)
    ]
    if not pairs:
        raise WrongUsage(_no_match(*sides))
    matched = {id(each) for pair in pairs for each in pair}
    return Comparison(
        tuple(facts(before, after)),
        across,
        tuple(match(one, other, metrics) for one, other in pairs),
        *(tuple(each for each in side.values() if id(each) not in matched) for side in sides),
    )


def check_metrics(names: Iterable[str]) -> None:
    known = {measure.name for measure in (*MEASURES, *GROUP_MEASURES)}
    for name in names:
        if name not in known and not name.startswith(TOLD):
            raise WrongUsage(
                f"--metric {name}: there is none; there are {', '.join(sorted(known))}, and"
                f" {TOLD}NAME of what programs tell"
            )


# --- what was different


def key_of(setup: Repeated) -> Key:
    """Its values by DIMENSIONS, as people read them."""
    said = setup.setup
    settings = " ".join(f"{name}={value}" for name, value in said.settings)
    return (
        said.experiment,
        said.policy,
        settings or "none",
        str(said.cpus),
        format_time(said.tick_ns),
        said.machine,
    )


def _by_key(side: Collection) -> dict[Key, Repeated]:
    found: dict[Key, Repeated] = {}
    for each in side.repeated.values():
        seeds = [run.seed for run in each.runs]
        twice = {seed for seed in seeds if seeds.count(seed) > 1}
        if twice:
            places = ", ".join(str(run.folder) for run in each.runs if run.seed in twice)
            raise WrongUsage(
                f"the same setup and seed was run more than once: {places}; name a folder that"
                " holds it once"
            )
        found[key_of(each)] = each
    return found


def across_dimensions(
    before: Mapping[Key, Repeated], after: Mapping[Key, Repeated]
) -> tuple[str, ...]:
    """Dimensions that have no value in common, and a single one on a side at least."""
    found = []
    for number, name in enumerate(DIMENSIONS):
        first = {key[number] for key in before}
        second = {key[number] for key in after}
        if not first & second and min(len(first), len(second)) == 1:
            found.append(name)
    return tuple(found)


def _alike(before: Key, after: Key, across: tuple[str, ...]) -> bool:
    return all(
        one == other
        for name, one, other in zip(DIMENSIONS, before, after, strict=True)
        if name not in across
    )


def _no_match(before: Mapping[Key, Repeated], after: Mapping[Key, Repeated]) -> str:
    """Which dimension keeps them apart."""
    for number, name in enumerate(DIMENSIONS):
        sides = [sorted({key[number] for key in side}) for side in (before, after)]
        if not set(sides[0]) & set(sides[1]) and min(map(len, sides)) > 1:
            words = " against ".join(", ".join(side) for side in sides)
            return (
                f"no setup of one side has a partner on the other: {name}: {words}; name folders"
                " that have one value each, or values in common"
            )
    return (
        "no setup of one side has a partner on the other that differs in one thing alone; name"
        " folders of the same workload, CPUs, tick and machine"
    )


_MADE_WITH: dict[str, Callable[[Kept], str]] = {
    "seeds": lambda run: str(run.seed),
    "command": lambda run: str(run.manifest["workload"]),
    "memory": lambda run: f"{run.manifest.get('memory_mib')} MiB",
    "limit": lambda run: format_time(run.manifest.get("limit_ns") or 0),
    "machine's version": lambda run: str(run.manifest.get("machine_version")),
    "kernel": lambda run: str(run.manifest.get("kernel_sha256"))[:12],
    "disk": lambda run: str(run.manifest.get("disk_sha256"))[:12],
    "simulator": lambda run: str(run.manifest.get("simulator_sha256"))[:12],
    "workload file": lambda run: str(run.manifest.get("workload_sha256"))[:12],
    "schedlab": lambda run: _commit(run.manifest),
    "host": lambda run: str(run.manifest.get("host")),
}


def _commit(manifest: Mapping[str, Any]) -> str:
    commit = str(manifest.get("commit") or "unknown")[:12]
    changed = " and changes" if manifest.get("changed") else ""
    return f"{manifest.get('schedlab')}, commit {commit}{changed}"


def facts(before: Collection, after: Collection) -> Iterable[Fact]:
    """The dimensions of the setups, and what else may explain a difference."""
    keys = [[key_of(each) for each in side.repeated.values()] for side in (before, after)]
    for number, name in enumerate(DIMENSIONS):
        values = [tuple(dict.fromkeys(key[number] for key in side)) for side in keys]
        yield Fact(name, *values)
    for name, read in _MADE_WITH.items():
        values = [tuple(dict.fromkeys(read(run) for run in side)) for side in (before, after)]
        yield Fact(name, *values)


# --- what came of it


def match(before: Repeated, after: Repeated, metrics: Sequence[str] = ()) -> Match:
    """One setup with its partner: by the seeds that both have; if they have none, unpaired."""
    common = tuple(sorted({run.seed for run in before.runs} & {run.seed for run in after.runs}))
    first, second = (
        [run for run in side.runs if not common or run.seed in common] for side in (before, after)
    )
    identical = bool(common) and all(map(_same_trace, first, second))
    found = Match(before, after, common, bool(common), identical)
    if identical or found.failed:
        return found
    rows = _rows(first, second, bool(common))
    return replace(
        found, rows=tuple(row for row in rows if not metrics or row.measure.name in metrics)
    )


def _same_trace(before: Kept, after: Kept) -> bool:
    first, second = before.folder / TRACE_FILE, after.folder / TRACE_FILE
    return first.is_file() and second.is_file() and filecmp.cmp(first, second, shallow=False)


def _rows(before: Sequence[Kept], after: Sequence[Kept], paired: bool) -> list[Row]:
    """All metrics that every run of both sides has."""
    repeatable = all(run.manifest.get("repeatable", True) for run in (*before, *after))
    sides = [_values(measured(Collection(runs)), len(runs)) for runs in (before, after)]
    found: dict[str | None, list[tuple[Measure, Difference]]] = {}
    for group, measure in _in_order(sides):
        (first, fine), (second, finer) = (side[group, measure.name] for side in sides)
        each = difference(first, second, paired, max(fine, finer), measure.within)
        found.setdefault(group, []).append((measure, each))
    return [row for group, each in found.items() for row in _corrected(group, each, repeatable)]


def _corrected(
    group: str | None, found: Sequence[tuple[Measure, Difference]], repeatable: bool
) -> Iterable[Row]:
    """Of the whole, or of one group: one question each, asked of several metrics.

    Where nothing differs at all, no choice of signs would show a difference: such a metric does
    not count (Tarone, 1990).
    """
    counting = [each.chance for _, each in found if each.chance is not None and not _same(each)]
    corrected = iter(holm(counting))
    for measure, each in found:
        chance = each.chance if each.chance is None or _same(each) else next(corrected)
        yield Row(measure, group, each, chance, verdict(measure, each, chance, repeatable))


Values = dict[tuple[str | None, str], tuple[list[float], float]]
"""By group and metric: a value for each run, by seed; and how fine they are."""


def _values(table: pl.DataFrame, runs: int) -> Values:
    """Of metrics that all runs have."""
    if table.is_empty():
        return {}
    parts = table.sort("seed").partition_by("group", "measure", as_dict=True, maintain_order=True)
    return {
        (group, measure): (part["value"].to_list(), max(part["resolution"]))
        for (group, measure), part in parts.items()
        if len(part) == runs
    }


def _in_order(sides: Sequence[Values]) -> Iterable[tuple[str | None, Measure]]:
    """Of both sides: the whole first, then each of several groups."""
    common = sides[0].keys() & sides[1].keys()
    groups = sorted({group for group, _ in common if group is not None})
    if len(groups) == 1:
        groups = []  # it would say the same again
    for measure in MEASURES:
        if (None, measure.name) in common:
            yield None, measure
    for name in sorted(name for group, name in common if name.startswith(TOLD)):
        yield None, told(name)
    for group, measure in product(groups, GROUP_MEASURES):
        if (group, measure.name) in common:
            yield group, measure


def _same(found: Difference) -> bool:
    """With each seed."""
    return found.before == found.after and found.low == found.high == 0


def verdict(
    measure: Measure, found: Difference, chance: float | None, repeatable: bool = True
) -> Verdict:
    """In a word."""
    if _same(found):
        return "same"
    if chance is None:
        return "one seed" if repeatable else "not repeatable"
    if found.chance is None or found.chance >= 1 - CONFIDENCE:
        return "chance"
    if chance >= 1 - CONFIDENCE:
        return "perhaps"
    if measure.better is None:
        return "changed"
    return "better" if (found.change < 0) == (measure.better == "lower") else "worse"


# --- for JSON


def _estimate_dict(found: Any) -> dict[str, Any]:
    return {"mean": found.mean, "low": found.low, "high": found.high, "count": found.count}


def _match_dict(found: Match) -> dict[str, Any]:
    return {
        "before": dict(zip(DIMENSIONS, key_of(found.before), strict=True)),
        "after": dict(zip(DIMENSIONS, key_of(found.after), strict=True)),
        "seeds": found.seeds,
        "seeds_left_out": found.left_out,
        "paired": found.paired,
        "identical": found.identical,
        "failed": [
            {
                "folder": str(run.folder),
                "status": run.status,
                "message": run.manifest.get("message"),
            }
            for run in found.failed
        ],
        "metrics": [row.to_dict() for row in found.rows],
    }
