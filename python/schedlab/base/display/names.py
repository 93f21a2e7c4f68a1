# SPDX-License-Identifier: MIT
"""Any text, such as the name of a process, made safe for where it is shown or kept.

A Linux process may be called anything, and so may folders, workloads and values that programs tell.
What is kept for programs (traces, manifests, Parquet) keeps names as they are. Whatever is shown has
them `visible`, from where it is read on; JSON, CSV and names of files are made by the other functions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

_UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tabs and ends of lines
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
    r"\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff"  # ends of lines to scripts alone; no characters
)
_UNSHOWN = re.compile(rf"[{_UNSEEN}\ud800-\udfff]")
_UNSHOWN_NOT_HALF = rf"[{_UNSEEN}]"
"""The same for Polars, whose texts have no half characters."""
_FORMULA = r"^[=@+\-\t\r\n]."
"""What a spreadsheet computes, unless it is a number."""
_NUMBER = r"^[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
SLUG_MAX = 60
"""Characters of a text that are in its slug: what is made of it stays below 255."""
_OF_OBJECTS = re.compile(
    r"constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf"
    r"|__(?:define|lookup)[GS]etter__|__proto__"
)
_OUTSIDE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def visible(text: str) -> str:
    """The text with an escape, such as \\x1b, for each character that is none to see: one that a
    terminal would obey, that turns the direction of what follows, or that a library dies of.

    Tabs and ends of lines stay.
    """
    return _UNSHOWN.sub(_escape, text)


def visible_line(text: str) -> str:
    """The same of a name, which has one line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_in_chart(text: str) -> str:
    """The same for a chart: there, a name that objects of JavaScript have of themselves gets a space
    behind it. Vega finds that instead of the text, and draws nothing."""
    shown = visible(text)
    return f"{shown} " if _OF_OBJECTS.fullmatch(shown) else shown


def all_visible(content: T, by: Callable[[str], str] = visible) -> T:
    """The same of all texts in lists, tuples, data classes and mappings, whose keys are texts, too."""
    made: Any = content
    if isinstance(content, str):
        made = by(content)
    elif isinstance(content, Mapping):
        made = {all_visible(key, by): all_visible(value, by) for key, value in content.items()}
    elif is_dataclass(content) and not isinstance(content, type):
        changes = {
            each.name: all_visible(getattr(content, each.name), by)
            for each in fields(content)
            if each.init
        }
        made = replace(content, **changes)
    elif isinstance(content, list | tuple) and not hasattr(content, "_fields"):
        made = type(content)(all_visible(each, by) for each in content)
    return cast(T, made)


def visible_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The same of all texts in a table."""
    import polars as pl

    unseen = [
        name
        for name, kind in frame.schema.items()
        if kind == pl.String and frame[name].str.contains(rf"{_UNSHOWN_NOT_HALF}|\n|\t").any()
    ]
    return frame.with_columns(
        pl.col(name).map_elements(visible_line, return_dtype=pl.String) for name in unseen
    )


def json_text(content: Any, *, indent: int | None = None) -> str:
    """JSON that means the same, with an escape of JSON's for each such character."""
    separators = None if indent else (",", ":")
    text = json.dumps(content, ensure_ascii=False, indent=indent, separators=separators)
    return _UNSHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_in_script(content: Any) -> str:
    """JSON in an element of a page: nothing in it may look like the element's end."""
    return json_text(content).translate(_OUTSIDE)


def write_csv(frame: pl.DataFrame, path: Path | IO[bytes]) -> None:
    """A table as CSV: a text that a spreadsheet would compute has ' before it."""
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    frame.with_columns(
        pl.when(pl.col(name).str.contains(_FORMULA) & ~pl.col(name).str.contains(_NUMBER))
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    ).write_csv(path)


def slug(text: str) -> str:
    """A text as a part of a file's name or of an address: letters, digits and hyphens. "" if it has
    neither letters nor digits. Long texts that differ have slugs that differ."""
    made = _NOT_IN_SLUGS.sub("-", text.lower()).strip("-")
    if len(made) <= SLUG_MAX:
        return made
    return f"{made[:SLUG_MAX].rstrip('-')}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def unique_slugs(texts: Sequence[str], otherwise: str) -> list[str]:
    """The slug of each of the texts, with a number if one before has the same; `otherwise` is the
    slug of a text without letters and digits."""
    taken: dict[str, None] = {}
    for text in texts:
        stem = made = slug(text) or otherwise
        number = 2
        while made in taken:
            made, number = f"{stem}-{number}", number + 1
        taken[made] = None
    return list(taken)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
