# SPDX-License-Identifier: MIT
"""`./schedlab run`: runs a workload under policies, or the studies if no workload is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from schedlab.commands.options import (
    execution_options,
    given_options,
    no_kvm_option,
)
from schedlab.commands.request_options import (
    choose_machine_without_spike,
    decide_option,
    out_option,
    request_from,
    request_options,
    workload_option,
)
from schedlab.commands.workload_run import run_workload

if TYPE_CHECKING:
    from schedlab.report.adaptive_seeds import SeedBudget

STUDY_PARAMETERS = ("seed", "tick", "memory", "decide", "out", "dry_run", "as_json")
"""Parameters that `reproduce` has, too."""


@click.command()
@workload_option
@request_options()
@decide_option
@out_option
@no_kvm_option
@execution_options
@click.pass_context
def run(
    context: click.Context,
    /,
    decide: SeedBudget | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a workload under policies.

    Every policy runs on every number of CPUs, --runs times, in parallel on this host's CPUs. Each run has a
    folder with its manifest, console, event trace and metrics.

    Without arguments, or only with --seed, --tick, --memory, --decide and --out, this is `./schedlab reproduce`,
    which reproduces six studies in one report.
    """
    if set(given_options(context, dict.fromkeys(context.params, ""))) <= {*STUDY_PARAMETERS}:
        from schedlab.commands.reproduce import reproduce

        context.invoke(reproduce, **{name: context.params[name] for name in STUDY_PARAMETERS})
    else:
        if not given_options(context, {"machine": ""}):
            choose_machine_without_spike()
        run_workload(request_from(options), as_json, decide, dry_run)
