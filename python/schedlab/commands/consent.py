# SPDX-License-Identifier: MIT
"""Asks for consent before a file's commands run on this machine outside a guest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from schedlab.base.display.names import visible_line
from schedlab.base.display.terminal import say
from schedlab.errors import WrongUsage
from schedlab.machines import HOST

if TYPE_CHECKING:
    from schedlab.machines.spec import RunSpec

T = TypeVar("T")


@dataclass(frozen=True)
class Consent:
    """The consent that the command line gives."""

    trust: bool = False
    """Permits commands from a file to run on this machine, after a question that shows them."""
    yes: bool = False
    """Answers the question with yes, if there is no terminal."""

    @property
    def option(self) -> str:
        """Returns the given option, or "" if there is none."""
        return "--trust" if self.trust else "--yes" if self.yes else ""


def trust_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds `trust` and `yes`, the fields of Consent, to a command that repeats stored runs."""
    for add in (
        click.option(
            "--yes", is_flag=True, help="With --trust, print the commands and do not ask."
        ),
        click.option(
            "--trust",
            is_flag=True,
            help=f"Also repeat runs of machine {HOST}, whose commands run on this machine; "
            "asks first.",
        ),
    ):
        command = add(command)
    return command


def require_consent(place: str, runs: Iterable[RunSpec], consent: Consent) -> None:
    """Raises WrongUsage if a run's command would run on this machine without the user's consent."""
    host_runs = [run for run in runs if run.machine.name == HOST]
    commands = dict.fromkeys(
        visible_line(f"{run.workload_title} (under {run.policy})") for run in host_runs
    )
    if not commands:
        return
    command_list = "".join(f"\n  {command}" for command in commands)
    if not consent.trust:
        raise WrongUsage(
            f"{place}: these commands would run on this machine, outside of a guest; "
            f"if you trust them, add --trust:{command_list}"
        )
    say(f"schedlab: {place}: these commands run on this machine, outside of a guest:{command_list}")
    if consent.yes:
        return
    if not sys.stdin.isatty():
        raise WrongUsage("--trust: there is no terminal to ask for consent; add --yes")
    if not click.confirm("Run them?", err=True):
        raise WrongUsage("--trust: you answered no; the commands were not run")
