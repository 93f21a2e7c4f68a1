# SPDX-License-Identifier: MIT
"""How often it is looked at a folder of runs, at most, whether they tell policies apart.

To add seeds until policies are told apart is to look several times, each time with a chance to err. What is
concluded from the runs must know how often (docs/comparing.md): the folder says so, as whoever looks may come
later, and more than once.
"""

from __future__ import annotations

from pathlib import Path

from schedlab.display.names import json_text
from schedlab.files.kept import Field, read_object, whole
from schedlab.files.whole import written

LOOKS = "looks.json"
_FIELDS: dict[str, Field] = {"looks": whole(1, 100, required=True)}


def looks_at(folder: Path) -> int:
    """Returns what the folder says; 1, if it says nothing. Raises FileRefused."""
    place = folder / LOOKS
    return int(read_object(place, _FIELDS)["looks"]) if place.is_file() else 1


def note_looks(folder: Path, looks: int) -> None:
    """Notes it, if it is more than was noted before."""
    if looks > looks_at(folder):
        with written(folder / LOOKS) as new:
            new.write_text(looks_text(looks))


def looks_text(looks: int) -> str:
    """Returns the note, as it stands in its file."""
    return json_text({"looks": looks}, indent=2) + "\n"
