# SPDX-License-Identifier: MIT
"""Tests the help: its sections, and its examples, which are valid command lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from schedlab.commands.cli import cli
from schedlab.commands.command_help import read_guide

FIRST_PAGE = 18


def commands_below(command: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    """Yields all commands with the words that call them."""
    if names:
        yield names
    if isinstance(command, click.Group):
        for name in command.commands:
            yield from commands_below(command.commands[name], *names, name)


ALL = [" ".join(names) for names in commands_below(cli)]
EXAMPLES = [(name, example) for name, pair in read_guide()["examples"].items() for example in pair]


def help_of(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments], prog_name="schedlab")
    assert result.exit_code == 0, result.output
    return result.output


def test_the_first_page_is_for_those_who_begin() -> None:
    first, full_help = help_of("--help"), help_of("--help", "all")
    sections = read_guide()["sections"]
    seldom = {name for title in read_guide()["hidden"] for name in sections[title]}
    shown = {
        line.split()[0] for line in first.splitlines() if line[:3].strip() and line[:2] == "  "
    }
    assert len(cli.commands) - len(seldom) == FIRST_PAGE
    assert not seldom & shown
    for name in cli.commands:
        assert f"\n  {name} " in full_help
    for title in sections:
        assert (f"\n{title}:\n" in first) == (title not in read_guide()["hidden"])


@pytest.mark.parametrize("name", ALL)
def test_help_is_complete_and_ends_with_examples(name: str) -> None:
    words = name.split()
    if words == ["demo"]:
        pytest.skip("the launcher shows its help, without this")
    text = help_of(*words, "--help")
    help_body = text.partition("\n\n")[2]
    assert not [line for line in help_body.splitlines() if line.endswith(("...", "…"))]
    assert text.rstrip().endswith(
        "\n".join(f"  {example}" for example in read_guide()["examples"][name])
    )


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_are_accepted(
    name: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only options are parsed, with existing folders and files."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example.partition(" | ")[0].replace("$(", "").removeprefix("sudo "))
    assert words[0] == "./schedlab"
    assert words[1 : 1 + len(name.split())] == name.split()
    for word in words[2:]:
        if "/" in word and "://" not in word:
            path = tmp_path / word
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch() if path.suffix else path.mkdir(exist_ok=True)
    (tmp_path / "perf.data").touch()
    (tmp_path / "secret").mkdir()
    context = click.Context(cli, info_name="schedlab")
    command: click.Command = cli
    words = words[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        subcommand_name, subcommand, words = command.resolve_command(context, words)
        assert subcommand_name and subcommand
        command = subcommand
        if isinstance(command, click.Group) and words:
            context = click.Context(command, context, subcommand_name)
        elif not {"--help"} & set(words):
            context = command.make_context(subcommand_name, words, parent=context)
            words = []


def parameters(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    below = command.commands.values() if isinstance(command, click.Group) else ()
    for subcommand in below:
        yield from parameters(subcommand)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e400"])
def test_numbers_are_finite(number: str) -> None:
    kinds = (click.types.FloatParamType, click.FloatRange)
    floats = [parameter for parameter in parameters(cli) if isinstance(parameter.type, kinds)]
    assert len(floats) >= 5
    for parameter in floats:
        with pytest.raises(click.BadParameter):
            parameter.type.convert(number, parameter, None)
