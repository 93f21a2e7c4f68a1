# SPDX-License-Identifier: MIT
"""What benchmarks share: rows that are held against an aim, and how a benchmark ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from schedlab.base.display.terminal import results
from schedlab.commands.options import echo_json
from schedlab.errors import SchedlabError

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Judged:
    """A measured row."""

    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that JSON has beside the fields."""

    @property
    def verdict(self) -> str:
        """`met`; what else came of it; or nothing where there is no aim."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            **{name: getattr(self, name) for name in (*self.derived, "verdict")},
        }


@dataclass(frozen=True)
class Aim(Judged):
    """What was asked for. `most` is met if `value` is not above it."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def verdict(self) -> str:
        return "met" if self.value <= self.most else "not met"


def finish(
    as_json: bool,
    told: Mapping[str, object] | list[dict[str, Any]],
    shown: Iterable[Table | str],
    rows: Iterable[Judged],
) -> None:
    """Prints `told` as JSON, or what is `shown`. Ends with status 1 if an aim was not met."""
    if as_json:
        echo_json(told)
    else:
        for each in shown:
            results().print(each)
    if any(row.verdict not in ("", "met") for row in rows):
        raise SystemExit(1)


def printed(command: Sequence[str | Path], status: int = 0) -> str:
    """What a program prints; it must end with this status."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != status:
        raise SchedlabError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout
