# SPDX-License-Identifier: MIT
"""Makes any text, such as a process's name, safe to display or to store.

Names of Linux processes, folders and workloads may contain any characters. Files for programs
(traces, manifests, Parquet) store names unchanged. For display, names pass through `visible`. Other
functions here are for JSON, CSV and file names.
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

_INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tabs and line ends
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of writing direction
    r"\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff"  # line ends of JavaScript; noncharacters
)
_INVISIBLE_PATTERN = re.compile(rf"[{_INVISIBLE}\ud800-\udfff]")
_INVISIBLE_IN_JSON = re.compile(rf"[{_INVISIBLE}\ud800-\udfff]|\\[bfru]")
"""Matches these characters in JSON, which escapes some of them."""
_INVISIBLE_FOR_POLARS = rf"[{_INVISIBLE}]"
"""The same characters for Polars, whose strings cannot contain surrogates."""
_FORMULA = r"^[=@+\-\t\r\n]."
"""A text that a spreadsheet would evaluate as a formula, unless it is a number."""
_NUMBER = r"^[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_SLUG_SEPARATORS = re.compile(r"[^a-z0-9]+")
SLUG_MAX = 60
"""Maximum number of characters of a slug, so that file names stay below 255 bytes."""
_JS_PROPERTIES = re.compile(
    r"constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf"
    r"|__(?:define|lookup)[GS]etter__|__proto__"
)
_HTML_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def visible(text: str) -> str:
    """Returns the text with escapes for invisible or harmful characters.

    These are control characters, changes of writing direction, and characters that break libraries.
    Tabs and line ends are unchanged.
    """
    return _INVISIBLE_PATTERN.sub(_escape_invisible, text)


def visible_line(text: str) -> str:
    """Returns the text on one line: `visible`, plus escapes for line ends and tabs."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_in_chart(text: str) -> str:
    """Returns the text for a chart.

    For a name that is also a property of every JavaScript object, Vega would find the property and
    draw nothing. Such a name gets a trailing space.
    """
    shown = visible(text)
    return f"{shown} " if _JS_PROPERTIES.fullmatch(shown) else shown


def map_texts(content: T, convert: Callable[[str], str] = visible) -> T:
    """Applies the function `convert` to all texts in lists, tuples, data classes and mappings."""
    mapped: Any = content
    if isinstance(content, str):
        mapped = convert(content)
    elif isinstance(content, Mapping):
        mapped = {
            map_texts(key, convert): map_texts(value, convert) for key, value in content.items()
        }
    elif is_dataclass(content) and not isinstance(content, type):
        changes = {
            field.name: map_texts(getattr(content, field.name), convert)
            for field in fields(content)
            if field.init
        }
        mapped = replace(content, **changes)
    elif isinstance(content, list | tuple) and not hasattr(content, "_fields"):
        mapped = type(content)(map_texts(item, convert) for item in content)
    return cast(T, mapped)


def is_visible(content: Any) -> bool:
    """Returns True only if `map_texts` leaves JSON values unchanged; takes a tenth of its time."""
    text = json.dumps(content, ensure_ascii=False, default=lambda _: "\0")
    return not _INVISIBLE_IN_JSON.search(text)


def visible_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Applies `visible_line` to all texts of a table."""
    import polars as pl

    unseen = [
        name
        for name, kind in frame.schema.items()
        if kind == pl.String and frame[name].str.contains(rf"{_INVISIBLE_FOR_POLARS}|\n|\t").any()
    ]
    return frame.with_columns(
        pl.col(name).map_elements(visible_line, return_dtype=pl.String) for name in unseen
    )


def json_text(content: Any, *, indent: int | None = None) -> str:
    """Returns the content as JSON with escapes for invisible characters."""
    separators = None if indent else (",", ":")
    text = json.dumps(content, ensure_ascii=False, indent=indent, separators=separators)
    return _INVISIBLE_PATTERN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_in_script(content: Any) -> str:
    """Returns JSON for an HTML script element. It cannot contain the element's end tag."""
    return json_text(content).translate(_HTML_ESCAPES)


def write_csv(frame: pl.DataFrame, path: Path | IO[bytes]) -> None:
    """Writes a table as CSV; puts ' before texts that a spreadsheet would evaluate."""
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
    """Returns the text in lower-case letters, digits and hyphens, for a file name or an address.

    "" if it has neither letters nor digits. Different long texts get different slugs.
    """
    words = _SLUG_SEPARATORS.sub("-", text.lower()).strip("-")
    if len(words) <= SLUG_MAX:
        return words
    return f"{words[:SLUG_MAX].rstrip('-')}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def unique_slugs(texts: Sequence[str], fallback: str) -> list[str]:
    """Returns a different slug for each text; adds numbers where slugs would be equal.

    `fallback`: the slug of a text without letters and digits.
    """
    taken: dict[str, None] = {}
    for text in texts:
        stem = candidate = slug(text) or fallback
        number = 2
        while candidate in taken:
            candidate, number = f"{stem}-{number}", number + 1
        taken[candidate] = None
    return list(taken)


def _escape_invisible(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
