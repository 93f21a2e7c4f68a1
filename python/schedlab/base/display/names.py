# SPDX-License-Identifier: MIT
"""Makes any text, such as a process's name, safe to display or to store.

Names of Linux processes, folders and workloads may contain any characters. Files for programs
(traces, manifests, Parquet) store names unchanged. Displayed names pass through `visible`; the
other functions serve JSON, CSV and file names.
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
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tabs and line ends
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of writing direction
    r"\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff"  # line ends of JavaScript; noncharacters
)
_UNSHOWN = re.compile(rf"[{_UNSEEN}\ud800-\udfff]")
_UNSHOWN_NOT_HALF = rf"[{_UNSEEN}]"
"""The same for Polars, whose strings cannot contain surrogates."""
_FORMULA = r"^[=@+\-\t\r\n]."
"""Text that a spreadsheet would evaluate, unless it is a number."""
_NUMBER = r"^[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
SLUG_MAX = 60
"""Maximum length of a slug, so that file names stay below 255 bytes."""
_OF_OBJECTS = re.compile(
    r"constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf"
    r"|__(?:define|lookup)[GS]etter__|__proto__"
)
_OUTSIDE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def visible(text: str) -> str:
    """Returns the text with escapes for invisible or harmful characters.

    These are control characters, changes of writing direction, and characters that break libraries.
    Tabs and line ends are unchanged.
    """
    return _UNSHOWN.sub(_escape, text)


def visible_line(text: str) -> str:
    """Returns a one-line name with `visible`'s escapes, and escapes for line ends and tabs."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_in_chart(text: str) -> str:
    """Returns the text for a chart.

    Names of JavaScript's object properties get a trailing space, because Vega would find the
    property and draw nothing.
    """
    shown = visible(text)
    return f"{shown} " if _OF_OBJECTS.fullmatch(shown) else shown


def all_visible(content: T, by: Callable[[str], str] = visible) -> T:
    """Applies `by` to all texts in lists, tuples, data classes and mappings with text keys."""
    made: Any = content
    if isinstance(content, str):
        made = by(content)
    elif isinstance(content, Mapping):
        made = {all_visible(key, by): all_visible(value, by) for key, value in content.items()}
    elif is_dataclass(content) and not isinstance(content, type):
        changes = {
            field.name: all_visible(getattr(content, field.name), by)
            for field in fields(content)
            if field.init
        }
        made = replace(content, **changes)
    elif isinstance(content, list | tuple) and not hasattr(content, "_fields"):
        made = type(content)(all_visible(item, by) for item in content)
    return cast(T, made)


def visible_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Applies `visible_line` to all texts of a table."""
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
    """Returns equivalent JSON, with JSON escapes for invisible characters."""
    separators = None if indent else (",", ":")
    text = json.dumps(content, ensure_ascii=False, indent=indent, separators=separators)
    return _UNSHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_in_script(content: Any) -> str:
    """Returns JSON for an HTML script element; it cannot contain the element's end tag."""
    return json_text(content).translate(_OUTSIDE)


def write_csv(frame: pl.DataFrame, path: Path | IO[bytes]) -> None:
    """Writes a table as CSV, with ' before texts that a spreadsheet would evaluate."""
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
    """Returns the text as part of a file name or address: lower-case letters, digits and hyphens.

    "" if it has neither letters nor digits. Different long texts have different slugs.
    """
    made = _NOT_IN_SLUGS.sub("-", text.lower()).strip("-")
    if len(made) <= SLUG_MAX:
        return made
    return f"{made[:SLUG_MAX].rstrip('-')}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def unique_slugs(texts: Sequence[str], fallback: str) -> list[str]:
    """Returns the texts' slugs, with numbers where slugs would repeat.

    `fallback` is the slug of a text without letters and digits.
    """
    taken: dict[str, None] = {}
    for text in texts:
        stem = made = slug(text) or fallback
        number = 2
        while made in taken:
            made, number = f"{stem}-{number}", number + 1
        taken[made] = None
    return list(taken)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
