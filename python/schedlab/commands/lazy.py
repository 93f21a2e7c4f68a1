# SPDX-License-Identifier: MIT
"""Commands of which a start imports only the one that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from schedlab.commands.guided import with_examples


class Modules(Mapping[str, Any]):
    """Commands by their names: `a-b` is `a_b` of the module a_b.py, in the folder of `package`; `import`
    is `import_`. `elsewhere`: the packages of those that are not there."""

    def __init__(self, package: str, *names: str, **elsewhere: str) -> None:
        self.packages = dict.fromkeys(names, package) | elsewhere

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
