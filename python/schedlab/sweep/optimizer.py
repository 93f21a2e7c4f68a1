# SPDX-License-Identifier: MIT
"""Searches for the best setup of a sweep: results determine the next proposals (docs/sweeps.md).

Uses Optuna's tree-structured Parzen estimators (Bergstra and others, 2011). ROUND setups are
proposed at a time, and their results are reported in order after all have ended. So the same seed
gives the same setups for any number of workers.
"""

from __future__ import annotations

import itertools
import logging
import math
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schedlab.base.toolchain.needs import need_extra
from schedlab.errors import WrongUsage, format_parameter
from schedlab.sweep import expansion, ranges
from schedlab.sweep.description import Description, PolicyEntry, Sample
from schedlab.sweep.expansion import Settings, Setup

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import IntDistribution
    from optuna.trial import Trial

    from schedlab.metrics.registry import Better

ROUND_SETUPS = 8
"""Setups executed together."""
_START_DIVISOR = 8
"""Fraction (1 / this) of the setups drawn before the search has results; at least ROUND."""
_REJECTED_PROPOSALS_MAX = 10
"""Unusable proposals in a row, after which a setup is drawn at random."""
_REJECTED_DRAWS_MAX = 20_000
"""Unusable draws in a row, after which the search ends."""
_POLICY = "policy"

Values = Sequence[float] | None
"""Means of a setup, one for each objective; None if it failed or lacks a value."""


@dataclass(frozen=True)
class Budget:
    """The number of runs of a search, and the seed of its random choices."""

    runs: int
    seed: int


def parse_budget(text: str) -> Budget:
    """Parses a budget: "200", or "200:7" with the search's seed. Raises WrongUsage."""
    runs, _, seed = text.partition(":")
    if not runs.strip().isdigit() or not int(runs) or (seed and not seed.strip().isdigit()):
        raise WrongUsage(
            "not a number of runs",
            what=format_parameter("search", text),
            fix="write RUNS or RUNS:SEED, such as 200",
        )
    if int(runs) > expansion.RUNS_MAX:
        raise WrongUsage(
            f"more than {expansion.RUNS_MAX:,} runs",
            what=format_parameter("search", text),
            fix="choose fewer",
        )
    return Budget(int(runs), int(seed or 1))


def grid_size(description: Description) -> int:
    """Returns the number of setups in the full grid, including those excluded by conditions."""
    return sum(map(_setup_count, description.policies))


def _setup_count(entry: PolicyEntry) -> int:
    return math.prod(ranges.count_values(values) for values in entry.tunables.values())


class Search:
    """Proposes setups round by round, and receives their results."""

    def __init__(
        self, description: Description, budget: Budget, directions: Sequence[Better]
    ) -> None:
        """Raises WrongUsage as `check` does."""
        entries = description.policies
        self.setups = budget.runs // len(description.seeds)
        self.share = max(ROUND_SETUPS, self.setups // _START_DIVISOR // len(entries))
        """Setups per policy that are tried before the search has results."""
        self.is_grid = grid_size(description) <= self.setups
        """True if the full grid fits into the budget; then all setups are tried."""
        full_entries = [
            grid_entry
            for grid_entry in entries
            if self.is_grid or _setup_count(grid_entry) <= self.share
        ]
        self.first: list[Setup] = [
            (entry, setup)
            for entry in full_entries
            for setup in expansion.list_setups(with_full_grid(entry))
        ]
        """All setups of policies with at most `share` setups."""
        self.entries = [entry for entry in entries if entry not in full_entries]
        self.check(description, budget)
        self.seed = budget.seed
        self.tried: dict[tuple[int, Settings], None] = {}
        self.study = (
            None if self.is_grid else _create_study(budget.seed, directions, len(self.entries))
        )

    def check(self, description: Description, budget: Budget) -> None:
        """Raises WrongUsage if the budget is too small or there is no choice."""
        if not any(_setup_count(entry) > 1 for entry in description.policies):
            raise WrongUsage(
                "there is only one configuration",
                what="`search=`",
                fix="give a tunable several values, `settings={'slice': '1..32'}`",
            )
        least, seeds = len(self.first) + ROUND_SETUPS * len(self.entries), len(description.seeds)
        if self.setups < least:
            raise WrongUsage(
                f"with {seeds} seed{'s' if seeds > 1 else ''} that is {self.setups} "
                f"configurations, and a search needs {least}",
                what=format_parameter("search", budget.runs),
                fix=f"choose at least {least * seeds} runs",
            )

    def rounds(self) -> Iterator[list[Setup]]:
        """Yields the setups of each round; `report_results` must be called before the next one."""
        self.open_trials: list[Trial] = []
        if not self.study:
            yield self.first
            return
        self.drawn = self._random_setups()
        start = [self._enqueue(number, setup) for number, setup in self._initial_setups()]
        yield self.first + start
        while (left := self.setups - len(self.first) - len(self.tried)) > 0:
            proposals = list(itertools.islice(self._proposals(), min(ROUND_SETUPS, left)))
            if not proposals:
                return
            yield proposals

    def report_results(self, values: Sequence[Values]) -> None:
        """Reports the results of the round's setups, in order."""
        if self.study is None:
            return
        from optuna.trial import TrialState

        for trial, value in zip(self.open_trials, values[-len(self.open_trials) :], strict=True):
            if value is None:
                self.study.tell(trial, state=TrialState.FAIL)
            else:
                self.study.tell(trial, list(value))
        self.open_trials = []

    def _initial_setups(self) -> Iterator[tuple[int, Settings]]:
        """Returns the initial setups, from Sobol' sequences."""
        for number, entry in enumerate(self.entries):
            sample = Sample("sobol", self.share, self.seed)
            numbered = []
            try:
                for setup in expansion.list_setups(replace(entry, sample=sample)):
                    numbered.append((number, setup))
            except WrongUsage:
                if not numbered:
                    raise  # else it has fewer setups than that
            yield from numbered

    def _enqueue(self, number: int, settings: Settings) -> Setup:
        """Adds a setup to the study as if the study had proposed it."""
        assert self.study
        entry = self.entries[number]
        places = {
            _parameter_name(number, name): _find_position(entry.tunables[name], value)
            for name, value in settings
        }
        chosen = {_POLICY: number} if len(self.entries) > 1 else {}
        self.study.enqueue_trial({**chosen, **places})
        trial = self.study.ask()
        setup = self._proposed_setup(trial)
        assert setup == (number, settings)
        self.open_trials.append(trial)
        self.tried[setup] = None
        return entry, settings

    def _proposals(self) -> Iterator[Setup]:
        """Yields new setups that fulfil the conditions; draws at random if the study finds none."""
        from optuna.trial import TrialState

        assert self.study
        while True:
            for _ in range(_REJECTED_PROPOSALS_MAX):
                trial = self.study.ask()
                number, settings = self._proposed_setup(trial)
                if self._is_new(number, settings):
                    self.open_trials.append(trial)
                    self.tried[number, settings] = None
                    yield self.entries[number], settings
                    break
                self.study.tell(trial, state=TrialState.FAIL)
            else:
                proposal = next(self.drawn, None)
                if proposal is None:
                    return
                yield self._enqueue(*proposal)

    def _is_new(self, number: int, settings: Settings) -> bool:
        """Returns whether the setup was not proposed before."""
        new = (number, settings) not in self.tried
        return new and expansion.fulfils_conditions(self.entries[number], settings)

    def _random_setups(self) -> Iterator[tuple[int, Settings]]:
        """Yields random setups; policies are weighted by their number of setups."""
        draw = random.Random(self.seed)
        sizes = [_setup_count(entry) for entry in self.entries]
        draws_left = _REJECTED_DRAWS_MAX
        while draws_left:
            number = draw.choices(range(len(sizes)), sizes)[0]
            entry = self.entries[number]
            chosen = [values.at(draw.random()) for values in entry.tunables.values()]
            settings = expansion.name_settings(entry, chosen)
            draws_left -= 1
            if self._is_new(number, settings):
                yield number, settings
                draws_left = _REJECTED_DRAWS_MAX

    def _proposed_setup(self, trial: Trial) -> tuple[int, Settings]:
        has_several_policies = len(self.entries) > 1
        number = (
            trial.suggest_categorical(_POLICY, range(len(self.entries)))
            if has_several_policies
            else 0
        )
        entry = self.entries[number]
        chosen: list[ranges.Scalar] = []
        for name, values in entry.tunables.items():
            distribution = _distribution(values)
            place = trial.suggest_int(
                _parameter_name(number, name),
                distribution.low,
                distribution.high,
                log=distribution.log,
            )
            chosen.append(_value_at(values, place))
        return number, expansion.name_settings(entry, chosen)


def _create_study(seed: int, directions: Sequence[Better], entries: int) -> Study:
    """Returns Optuna's study with a sampler of this seed."""
    need_extra("sweep")
    import optuna

    logging.getLogger("optuna").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # Optuna warns about experimental features; the lock file pins its version.
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=0, multivariate=True, group=entries > 1, constant_liar=True
        )
    toward = optuna.study.StudyDirection
    directions_of_optuna = [
        toward.MINIMIZE if direction == "lower" else toward.MAXIMIZE for direction in directions
    ]
    return optuna.create_study(directions=directions_of_optuna, sampler=sampler)


def with_full_grid(entry: PolicyEntry) -> PolicyEntry:
    """Returns the entry with its full grid."""
    return replace(entry, sample=None, tunables=dict(_named_values(entry)))


def _named_values(entry: PolicyEntry) -> Iterable[tuple[str, ranges.Values]]:
    """Yields the tunables with their values, in the order of the entry."""
    for name, values in entry.tunables.items():
        if isinstance(values, ranges.Logarithmic):
            yield name, ranges.Span(values.first, values.last)
        else:
            yield name, values


def _parameter_name(number: int, tunable: str) -> str:
    """Returns the name of a policy's tunable within the study. `number`: the policy's index."""
    return f"{number}.{tunable}"


# --- values as integer positions, where neighbours are similar


def _distribution(values: ranges.Values) -> IntDistribution:
    """Returns the range of positions of these values."""
    from optuna.distributions import IntDistribution

    if isinstance(values, ranges.Logarithmic):
        return IntDistribution(values.first, values.last, log=True)
    return IntDistribution(0, ranges.count_values(values) - 1)


def _sorted_values(values: ranges.Listed) -> list[int]:
    """Returns the listed integers in ascending order."""
    return sorted(value for value in values.values if isinstance(value, int))


def _value_at(values: ranges.Values, index: int) -> int:
    if isinstance(values, ranges.Listed):
        return _sorted_values(values)[index]
    return index if isinstance(values, ranges.Logarithmic) else values.first + values.step * index


def _find_position(values: ranges.Values, value: int) -> int:
    if isinstance(values, ranges.Listed):
        return _sorted_values(values).index(value)
    return (
        value if isinstance(values, ranges.Logarithmic) else (value - values.first) // values.step
    )
