# SPDX-License-Identifier: MIT
"""Tests that the library's messages name parameters, and that the command line names options
instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest

from conftest import ROOT
from schedlab.commands.cli import cli
from schedlab.commands.wording import OPTIONS

LIBRARY = ROOT / "python" / "schedlab"
ALLOWED = {
    "options of other programs": (
        "base/outputs/__init__.py base/toolchain/build.py base/toolchain/versions.py"
        " machines/linux/commands.py machines/linux/kernel.py machines/spike.py machines/spike_install.py"
        " monitor/demo/__main__.py monitor/standalone/playground.py"
        " recordings/recorder.py studies/linux_experiments.py environment.py"
    ),
    "options of schedlab-sim or schedlab-linux": (
        "machines/linux/live_guest.py machines/linux/machine.py monitor/recorder.py"
        " monitor/systems/linux_host.py monitor/systems/linux_server.py runs/recording.py"
    ),
    "command lines to copy": "report/reproduction.py runs/repeat_commands.py sweep/page.py",
}


def commands(group: click.Group) -> Iterator[click.Command]:
    for name in group.commands:
        command = group.commands[name]
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


@pytest.fixture(scope="module")
def options() -> frozenset[str]:
    """Returns all options that begin with two dashes."""
    declared = {
        name for command in commands(cli) for parameter in command.params for name in parameter.opts
    }
    return frozenset(name for name in declared if name.startswith("--"))


def texts(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def named(source: str, options: frozenset[str]) -> list[str]:
    """Yields lines and the options that a module's strings and docstrings name there."""
    return [
        f"{line}: {word}"
        for line, text in texts(source)
        for word in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)
        if word in options
    ]


def test_texts_below_the_command_line_name_no_options(options: frozenset[str]) -> None:
    allowed = {path for paths in ALLOWED.values() for path in paths.split()}
    lines_by_path = {
        str(path.relative_to(LIBRARY)): lines
        for path in sorted(LIBRARY.rglob("*.py"))
        if "commands" not in path.relative_to(LIBRARY).parts[:1]
        and (lines := named(path.read_text(), options))
    }
    assert {path: lines for path, lines in lines_by_path.items() if path not in allowed} == {}
    assert allowed - lines_by_path.keys() == set(), "names no option any more"


@pytest.mark.parametrize(
    "planted",
    ['raise WrongUsage(f"--cpus {number}: too many")', 'say("add --machine sim")',
     'check("--out", place)'],
)  # fmt: skip
def test_planted_option_is_detected(planted: str, options: frozenset[str]) -> None:
    assert named(planted, options)


def test_parameters_in_texts_have_options(options: frozenset[str]) -> None:
    assert set(OPTIONS.values()) <= options
    source = "\n".join(path.read_text() for path in sorted(LIBRARY.rglob("*.py")))
    called = r"""\b(?:format_parameter|check_file|check_folder|check_range|one_value_each)\(\s*["'](\w+)["']"""
    in_fields = r"""\b(?:what|fix)=f?"[^\n]*?`([a-z_]+)="""
    assert set(re.findall(f"{called}", source)) | set(re.findall(in_fields, source)) <= {
        *OPTIONS, "run",
    }  # fmt: skip
