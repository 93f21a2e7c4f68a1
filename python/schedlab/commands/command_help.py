# SPDX-License-Identifier: MIT
"""The help of the command line: sections, examples, old spellings, and lazy imports of commands.

Rare commands appear only in `--help all`. Each command has two examples, from guide.yaml.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from schedlab.base.display.terminal import say

OLD_SPELLINGS = {
    "bench": "dev bench",
    "docs": "dev docs",
    "lint": "dev lint",
    "soak": "dev soak",
    "run study": "reproduce",
    **{f"run study-{number}": f"reproduce study-{number}" for number in range(1, 7)},
    "run --quick": "reproduce --quick",
    "run --full": "reproduce --full",
    "run --replay": "replay",
    "run --what-if": "replay --what-if",
    "run --again": "verify",
    "trace --from-perf": "import",
    "branch --seed": "branch --seeds",
    "explore --workers": "explore --jobs",
    "explore --minutes": "explore --for {}min",
    "dev --hours": "dev --for {}h",
    "dev --seconds": "dev --for {}s",
    "score --set": "score --workload-set",
    "sweep --workers": "sweep --jobs",
}
"""Old spelling: new spelling. The second old word may be anywhere after the first.

If it is an option with a value, the value remains or replaces {}.
"""

_FLAGS = ("--dry-run", "--ignore-limits", "--json", "--no-kvm", "--quiet", "--unchecked")
"""Flags of these commands. The word after a flag is not its value."""


def modernize(words: Sequence[str]) -> list[str]:
    """Returns a command line in the new spelling, and prints a line if it was in an old one."""
    command, *others = words or [""]
    if command in OLD_SPELLINGS:
        return modernize(_replace_words(command, [], others))
    for index, word in enumerate(others):
        name, _, value = word.partition("=")
        before = others[index - 1] if index else ""
        takes_value = before.startswith("--") and "=" not in before and before not in _FLAGS
        is_value = takes_value and not word.startswith("--")
        if f"{command} {name}" in OLD_SPELLINGS and not is_value:
            values = [value] if value else []
            after = values + others[index + 1 :]
            return modernize(_replace_words(f"{command} {name}", others[:index], after))
    return list(words)


def _replace_words(old: str, before: list[str], after: list[str]) -> list[str]:
    """Returns the words in the new spelling.

    `before`: the words up to the old spelling; `after`: the rest.
    """
    command, *more = OLD_SPELLINGS[old].split()
    if "{}" in OLD_SPELLINGS[old]:
        value, *after = after or [""]
        more = [word.replace("{}", value) for word in more]
    new = " ".join([command, *more])
    say(f"schedlab: `{old}` is now `./schedlab {new}`; the next release drops the old spelling")
    return [command, *before, *more, *after]


_ALL_ARGUMENT = "all"
_UNLIMITED_WIDTH = 1000
"""Width in characters that never cuts the first sentence of a command's help."""


@cache
def read_guide() -> dict[str, Any]:
    """Returns the content of guide.yaml."""
    import yaml

    content: dict[str, Any] = yaml.safe_load(
        Path(__file__).with_name("guide.yaml").read_text("utf-8")
    )
    return content


def with_examples(command: click.Command) -> click.Command:
    """Adds the examples to the help of a command and its subcommands, and returns the command."""
    command.format_epilog = _write_examples  # type: ignore[method-assign]
    if isinstance(command, click.Group):
        command.format_commands = partial(_write_commands, command)  # type: ignore[method-assign]
        if isinstance(command.commands, dict):  # otherwise examples are added at the import
            for subcommand in command.commands.values():
                with_examples(subcommand)
    return command


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    name = ctx.command_path.partition(" ")[2]
    with formatter.section("Examples"):
        for example in read_guide()["examples"][name]:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _write_commands(group: click.Group, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    with formatter.section("Commands"):
        formatter.write_dl(
            [(name, _first_sentence(group, ctx, name)) for name in group.list_commands(ctx)]
        )


def _first_sentence(group: click.Group, ctx: click.Context, name: str) -> str:
    """Returns the first sentence of a command's help."""
    command = group.get_command(ctx, name)
    return command.get_short_help_str(_UNLIMITED_WIDTH) if command else ""


class SectionedGroup(click.Group):
    """The command line, whose help has sections. `--help all` also shows hidden commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the command line; `--help all` shows all commands."""
        if len(args) == 2 and args[0] in ctx.help_option_names and args[1] == _ALL_ARGUMENT:
            ctx.meta[_ALL_ARGUMENT] = True
            args = args[:1]
        return super().parse_args(ctx, args if ctx.resilient_parsing else modernize(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Completes names without their help, which would import every command."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*map(CompletionItem, names), *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands by section."""
        hidden = () if ctx.meta.get(_ALL_ARGUMENT) else read_guide()["hidden"]
        for title, names in read_guide()["sections"].items():
            if title not in hidden:
                with formatter.section(title):
                    formatter.write_dl([(name, _first_sentence(self, ctx, name)) for name in names])
        if hidden:
            formatter.write_paragraph()
            others = sum(len(read_guide()["sections"][title]) for title in hidden)
            formatter.write_text(
                f"`./schedlab --help all` lists {others} more, for experts. Each command has --help, with examples."
            )


class LazyCommands(Mapping[str, Any]):
    """Maps the names of commands to commands, and imports a command at its first use.

    Command `a-b` is the function `a_b` in a_b.py of `package`; `import` is `import_`. `other_modules`:
    packages of commands that are not in `package`.
    """

    def __init__(self, package: str, *names: str, **other_modules: str) -> None:
        self.packages = dict.fromkeys(names, package) | other_modules

    def __getitem__(self, name: str) -> click.Command:
        package = self.packages[name]
        word = name.replace("-", "_") + "_" * iskeyword(name)
        command: click.Command = getattr(import_module(f"{package}.{word}"), word)
        return with_examples(command)

    def __contains__(self, name: object) -> bool:
        return name in self.packages

    def __iter__(self) -> Iterator[str]:
        return iter(self.packages)

    def __len__(self) -> int:
        return len(self.packages)
