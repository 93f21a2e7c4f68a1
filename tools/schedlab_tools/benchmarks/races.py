# SPDX-License-Identifier: MIT
"""Plants races in copies of the kernel (bench/races), and measures how soon they are found."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.policies import DEFAULT_POLICY, PolicyChoice
from schedlab.commands.options import json_option
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.interleavings.search import minimise, search
from schedlab_tools.interleavings.trial import Setup
from schedlab_tools.targets import JudgedRow

FOLDER = ROOT / "bench" / "races"
_SEEDS_LINE = re.compile(r"^Found within (\d+) seeds\.$", re.MULTILINE)
_CPUS, _LIMIT_NS = 3, 10_000_000_000


@dataclass(frozen=True)
class Race:
    """A patch of the kernel; its first line describes the defect."""

    name: str
    says: str
    seeds: int
    """Number of seeds within the race is found."""

    def kernel(self) -> Path:
        """Builds the kernel with the race."""
        path = BUILD_FOLDER / "races" / f"{self.name}.elf"
        build(str(path.relative_to(ROOT)))
        return path


@dataclass(frozen=True)
class HuntResult(JudgedRow):
    """How the race was found. `seed` 0: it was not."""

    race: str
    says: str
    within: int
    seed: int = 0
    workload: str = ""
    kind: str = ""
    """The kind of failure, as a word."""
    drawn: int = 0
    needed: int = 0
    """Number of turns with abnormal length: drawn by the seed, and sufficient for the failure."""

    @property
    def verdict(self) -> str:
        """Returns whether the race was found within its number of seeds."""
        return "met" if self.seed else "not met"


def planted_races() -> tuple[Race, ...]:
    """Returns all planted races."""
    return tuple(_read(file) for file in sorted(FOLDER.glob("*.patch")))


def _read(file: Path) -> Race:
    text = file.read_text()
    seeds_match = _SEEDS_LINE.search(text)
    assert seeds_match, f"{file} does not say within how many seeds it is found"
    return Race(file.stem, text.partition("\n")[0], int(seeds_match[1]))


def hunt(race: Race, workloads: Sequence[str], jobs: int, tries: int) -> HuntResult:
    """Searches for the race, and minimises the failing run."""
    build("image", "build/fsck")
    kernel = race.kernel()
    setups = [
        Setup(workload, PolicyChoice(DEFAULT_POLICY), _CPUS, _LIMIT_NS, kernel)
        for workload in workloads
    ]
    found_race = search(setups, range(1, race.seeds + 1), jobs, lambda seed: None)
    if found_race is None:
        return HuntResult(race.name, race.says, race.seeds)
    minimal = minimise(*found_race, tries, lambda count: None)
    return HuntResult(
        race.name,
        race.says,
        race.seeds,
        minimal.seed,
        minimal.setup.workload,
        minimal.failure.kind,
        minimal.drawn,
        len(minimal.holds),
    )


@click.command()
@click.option(
    "--tries",
    default=200,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Runs to make each one small that breaks.",
)
@json_option
def races(tries: int, as_json: bool) -> None:
    """Plant ten races in copies of the kernel, one at a time, and search for each as `explore kernel` does.

    Exit status 1 if one is not found within the seeds that bench/races says.
    """
    from schedlab.commands.explore.kernel import TEST_WORKLOADS
    from schedlab_tools.interleavings.trial import need_driver

    need_driver()
    rows = []
    with working("races") as update:
        for race in planted_races():
            update(race.name)
            rows.append(hunt(race, TEST_WORKLOADS, len(os.sched_getaffinity(0)), tries))
    table = new_table("", "race", ">seed", ">within", "seen as", ">turns", ">needed")
    for row in rows:
        row_texts = (str(row.seed), row.kind, f"{row.drawn:,}", str(row.needed))
        seed, kind, drawn, needed = row_texts if row.seed else ("none", "", "", "")
        table.add_row(row.race, seed, str(row.within), kind, drawn, needed)
    finish(as_json, {"rows": [asdict(row) for row in rows]}, (table,), rows)
