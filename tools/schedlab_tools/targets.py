# SPDX-License-Identifier: MIT
"""Defines measured rows that are compared with targets."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class JudgedRow:
    """A measured row."""

    derived: ClassVar[tuple[str, ...]] = ()
    """Properties to include in JSON, in addition to the fields."""

    @property
    def verdict(self) -> str:
        """The verdict: `met`, another result, or nothing if there is no target."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        return {
            **asdict(self),
            **{name: getattr(self, name) for name in (*self.derived, "verdict")},
        }


@dataclass(frozen=True)
class Aim(JudgedRow):
    """A target, which is met if `value` is at most `most`."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def verdict(self) -> str:
        """Returns `met` if the value is at most the target."""
        return "met" if self.value <= self.most else "not met"
