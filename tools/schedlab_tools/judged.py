# SPDX-License-Identifier: MIT
"""Measured rows that are held against an aim."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


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
