# SPDX-License-Identifier: MIT
"""Option types and options that several commands share."""

import math
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from schedlab.base.display.names import json_text
from schedlab.base.display.terminal import disable_progress
from schedlab.base.host.disk import TRACE_LIMIT_MIB, TRACE_LIMIT_VARIABLE
from schedlab.base.toolchain.policies import (
    PolicyChoice,
    parse_choices,
    parse_policy_setting,
    parse_setting,
)
from schedlab.machines import MACHINES, machine_named
from schedlab.machines.sim import Simulator
from schedlab.report.adaptive_seeds import parse_budget
from schedlab.runs.plan import MEMORY_RANGE_MIB, TICK_RANGE_NS
from schedlab.units import format_time, parse_counts, parse_time
from schedlab.workload.changes import parse_change
from schedlab.workload.delays import parse_delay
from schedlab.workload.shapes.reading import find_shape as choose_shape

T = TypeVar("T")


class Parsed(click.ParamType[Any]):
    """An option type that a function parses.

    The function's ValueError becomes the option's error.
    """

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        """Creates the type.

        `name`: the placeholder in the help; `read`: the parser, which raises ValueError.
        """
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the parsed value, and turns a ValueError into the option's error."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(f"'{value}': {error}", param, ctx)


class MachineName(click.Choice[str]):
    """An option type that turns a machine's name into the machine."""

    def __init__(self) -> None:
        """Creates the type with the names of all machines."""
        super().__init__(MACHINES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the machine of a name."""
        return (
            machine_named(super().convert(value, param, ctx)) if isinstance(value, str) else value
        )


class Number(click.FloatRange):
    """A number within bounds. Rejects NaN, which passes click's comparison with bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number, and rejects NaN."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"'{value}' is not a finite number", param, ctx)
        return number


def time_between(lowest: int, highest: int) -> Callable[[str], int]:
    """Returns a parser of times between the bounds, in ns."""

    def parse(text: str) -> int:
        """Parses a time. Raises ValueError if it is outside of the bounds."""
        nanoseconds = parse_time(text)
        if not lowest <= nanoseconds <= highest:
            raise ValueError(
                f"out of range; choose {format_time(lowest)} to {format_time(highest)}"
            )
        return nanoseconds

    return parse


def read_sources(text: str) -> tuple[PolicyChoice | Path, ...]:
    """Parses a C file, or the names of policies."""
    return (Path(text),) if text.endswith(".c") else parse_choices(text)


CPUS = Parsed("CPUS", lambda text: parse_counts(text, 1, Simulator.cpus_max))
POLICIES = Parsed("POLICIES", parse_choices)
SOURCES = Parsed("POLICY", read_sources)
SETTING = Parsed("NAME=VALUE", parse_setting)
BUDGET = Parsed("[SEEDS|TIME]", parse_budget)
POLICY_SETTING = Parsed("[POLICY.]NAME=VALUE", parse_policy_setting)
DELAY = Parsed("OPERATION=TIME", parse_delay)
CHANGE = Parsed("PLACE=VALUE", parse_change)
TICK = Parsed("TIME", time_between(*TICK_RANGE_NS))
SHAPE = Parsed("SHAPE", choose_shape)
LIMIT = Parsed("TIME", time_between(1_000_000, 24 * 3600 * 1_000_000_000))
SEED = click.IntRange(0, 2**63 - 1)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
"""A file or a folder. Like the types above, it need not exist."""
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EXISTING_PATH = click.Path(exists=True, path_type=Path)
MEMORY = click.IntRange(*MEMORY_RANGE_MIB)

anonymize_option = click.option(
    "--anonymize",
    is_flag=True,
    help="Replace the names of programs by numbers, and leave out the host's name and the command.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the results as JSON, for programs."
)


def duration_option(
    help_text: str, maximum: str, default: str | None = None
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Returns the option for how long a command works, from one second to `maximum`.

    Its parameter is `duration_ns`.
    """
    return click.option(
        "--for",
        "duration_ns",
        default=default,
        show_default=default is not None,
        type=Parsed("TIME", time_between(_SECOND_NS, parse_time(maximum))),
        help=help_text,
    )


_SECOND_NS = 1_000_000_000


def policy_option(
    help_text: str, **settings: Any
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Returns the option of policies. Its parameter is `policies`."""
    return click.option("--policy", "policies", type=POLICIES, help=help_text, **settings)


def given_options(context: click.Context, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options that the command line contains, by parameter name."""
    return {
        name: option
        for name, option in options.items()
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE
    }


def pass_as_object(options_class: type[Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Passes a command's parameters to its function as one object with a field per parameter."""

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        """Returns the command whose function takes one object."""

        @wraps(command)
        def call(*arguments: Any, **options: Any) -> T:
            """Calls the command with the object."""
            return command(*arguments, options_class(**options))

        return call

    return decorate


def no_kvm_option(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the option `--no-kvm`, which switches the use of KVM off."""

    def switch_off(_context: click.Context, _option: click.Parameter, is_given: bool) -> None:
        from schedlab.machines.linux import kvm

        if is_given:
            kvm.switch_off()

    return click.option(
        "--no-kvm",
        is_flag=True,
        expose_value=False,
        callback=switch_off,
        help="Run Linux guests without the host's CPUs (KVM).  [also: SCHEDLAB_NO_KVM=1]",
    )(command)


def quiet_option(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the option `--quiet`, which silences progress messages."""

    def apply_option(_context: click.Context, _option: click.Parameter, is_quiet: bool) -> None:
        if is_quiet:
            disable_progress()

    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=apply_option,
        help="Print results, warnings and errors, and no progress.",
    )(command)


def execution_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the options of all commands that execute runs, including `dry_run` and `as_json`."""
    dry_run_option = click.option(
        "--dry-run",
        is_flag=True,
        help="Print the number of runs and some of them, and run nothing.",
    )
    return trace_limit_option(quiet_option(dry_run_option(json_option(command))))


def trace_limit_option(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the option that limits the size of traces, in MiB."""

    def apply_option(_context: click.Context, _option: click.Parameter, mib: int | None) -> None:
        if mib is not None:
            os.environ[TRACE_LIMIT_VARIABLE] = str(mib)

    return click.option(
        "--trace-limit",
        type=click.IntRange(1),
        metavar="MIB",
        expose_value=False,
        callback=apply_option,
        help=f"End a run whose trace exceeds this size.  [default: {TRACE_LIMIT_MIB}; also: {TRACE_LIMIT_VARIABLE}]",
    )(command)


def memory_option(command: Callable[..., T]) -> Callable[..., T]:
    """Adds the option of a machine's memory, in MiB."""
    return click.option(
        "--memory", default=512, show_default=True, type=MEMORY, help="Memory of the machine, MiB."
    )(command)


def echo_json(content: Any) -> None:
    """Prints JSON on standard output."""

    click.echo(json_text(content, indent=2))
