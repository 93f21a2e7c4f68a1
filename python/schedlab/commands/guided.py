# SPDX-License-Identifier: MIT
"""Help by subject: commands in sections, the seldom ones behind `--help all`, and two examples of each (guide.yaml)."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from schedlab.commands.spellings import modernize

_ALL = "all"
_WIDE = 1000
"""Characters: the first sentence of a command's help is never cut."""


@cache
def guide() -> dict[str, Any]:
    """Returns what guide.yaml says."""
    import yaml

    read: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("guide.yaml").read_text("utf-8"))
    return read


def with_examples(command: click.Command) -> click.Command:
    """Returns the command, whose help now ends with its examples; so do those of its own commands."""
    command.format_epilog = _write_examples  # type: ignore[method-assign]
    if isinstance(command, click.Group):
        command.format_commands = partial(_write_commands, command)  # type: ignore[method-assign]
        if isinstance(command.commands, dict):  # else they come here when they are imported
            for each in command.commands.values():
                with_examples(each)
    return command


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    name = ctx.command_path.partition(" ")[2]
    with formatter.section("Examples"):
        for example in guide()["examples"][name]:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _write_commands(group: click.Group, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    with formatter.section("Commands"):
        formatter.write_dl([(name, _about(group, ctx, name)) for name in group.list_commands(ctx)])


def _about(group: click.Group, ctx: click.Context, name: str) -> str:
    command = group.get_command(ctx, name)
    return command.get_short_help_str(_WIDE) if command else ""


class Guided(click.Group):
    """The command line, whose help has sections. `--help all` shows those that are hidden, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if len(args) == 2 and args[0] in ctx.help_option_names and args[1] == _ALL:
            ctx.meta[_ALL] = True
            args = args[:1]
        return super().parse_args(ctx, args if ctx.resilient_parsing else modernize(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Completes names without their help, for which each command would be imported."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*map(CompletionItem, names), *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        hidden = () if ctx.meta.get(_ALL) else guide()["hidden"]
        for title, names in guide()["sections"].items():
            if title not in hidden:
                with formatter.section(title):
                    formatter.write_dl([(name, _about(self, ctx, name)) for name in names])
        if hidden:
            formatter.write_paragraph()
            others = sum(len(guide()["sections"][title]) for title in hidden)
            formatter.write_text(
                f"`./schedlab --help all` shows {others} more, for experts. Each command has --help,"
                " with examples."
            )
