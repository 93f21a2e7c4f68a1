# SPDX-License-Identifier: MIT
"""Reads files that may be damaged or forged, and checks every value.

Raises FileRefused with the file's name and the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused

if TYPE_CHECKING:
    import polars as pl

Sound = Callable[[Any], bool]


@dataclass(frozen=True)
class Field:
    """The requirement on a member of an object."""

    expected: str
    """Description of valid values, for messages."""
    sound: Sound
    required: bool = False
    """False if the member may be missing or null."""

    def allows(self, value: object) -> bool:
        """Returns whether the member may have this value; None means missing."""
        return not self.required if value is None else self.sound(value)


# --- kinds of values


def text(*, required: bool = False, empty: bool = True) -> Field:
    """A text, optionally non-empty."""
    return Field(
        "a text" if empty else "a text that is not empty",
        lambda value: isinstance(value, str) and (empty or bool(value.strip())),
        required,
    )


def flag(*, required: bool = False) -> Field:
    """True or false."""
    return Field("true or false", lambda value: isinstance(value, bool), required)


def integer(least: int, most: int, *, required: bool = False) -> Field:
    """An integer from `least` to `most`, both included."""
    return Field(
        f"a whole number from {least} to {most}",
        lambda value: _is_integer(value, least, most),
        required,
    )


def number(*, required: bool = False) -> Field:
    """A non-negative number below 1e18."""
    return Field(
        "a number from 0 on",
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
        ),
        required,
    )


def by_name(what: str, sound: Sound, *, required: bool = False) -> Field:
    """An object whose values satisfy `sound`."""
    return Field(
        f"an object: {what} by their names",
        lambda value: isinstance(value, dict) and all(map(sound, value.values())),
        required,
    )


def list_of(what: str, sound: Sound, *, required: bool = False) -> Field:
    """A list whose items satisfy `sound`."""
    return Field(
        f"a list of {what}",
        lambda value: isinstance(value, list) and all(map(sound, value)),
        required,
    )


def _is_integer(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


# --- JSON


def read_object(path: Path, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Reads a JSON object and checks these members; other members are unchanged."""
    content = _parsed(path)
    if not isinstance(content, dict):
        raise FileRefused(f"{path}: expected a JSON object")
    return checked(path, content, fields)


def checked(path: Path, content: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """Checks the members of an object that was read from `path`."""
    node_fields: dict[str, Any] = {
        key: value for key, value in content.items() if value is not None
    }
    for key, field in fields.items():
        if key not in node_fields:
            if field.required:
                raise FileRefused(f"{path}: {key} is missing: expected {field.expected}")
        elif not field.sound(node_fields[key]):
            shown = json.dumps(node_fields[key])[:40]
            raise FileRefused(f"{path}: {key}: {shown}: expected {field.expected}")
    # Unchecked nulls may have a meaning to their writer.
    return {key: value for key, value in content.items() if key in node_fields or key not in fields}


def _parsed(path: Path) -> Any:
    try:
        content = json.loads(read_text(path), parse_constant=_no_number)
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise FileRefused(f"{path}: too many nested {{ and [ in the JSON") from None
    except UnicodeEncodeError:
        raise FileRefused(f"{path}: a text contains half a character (a surrogate)") from None
    except ValueError as error:  # JSONDecodeError, or a number of thousands of digits
        raise FileRefused(f"{path}: not valid JSON: {error}") from None
    return content


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


# --- Parquet


def read_tables(
    paths: Iterable[Path], schema: Mapping[str, pl.DataType], complete: bool = True, **how: Any
) -> pl.DataFrame:
    """Reads the rows of all files as one table; `how` is passed to polars.read_parquet().

    Columns that `schema` names have its kind of type: text, truth, or finite numbers. Where the
    files lack one, it is null if the table is to be `complete`.
    """
    import polars as pl

    files = list(paths)
    try:
        with _quiet():
            table = pl.read_parquet(files, glob=False, **how)
        _check_columns(table, schema)
    except (pl.exceptions.SchemaError, pl.exceptions.ColumnNotFoundError):
        if len(files) > 1:  # files of different schedlab versions
            tables = [read_tables([path], schema, complete=complete, **how) for path in files]
            return pl.concat(tables, how="diagonal_relaxed")
        raise _refused(
            files, "columns are missing, or of another type than they must have"
        ) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _refused(files, str(error)) from None
    missing = [name for name in schema if name not in table.columns] if complete else []
    return table.with_columns(pl.lit(None, schema[name]).alias(name) for name in missing)


_REDIRECTING = Lock()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses standard error: when Polars panics on a file, Rust prints a message before the exception."""
    with _REDIRECTING:
        try:
            saved_stderr = os.dup(2)
        except OSError:  # standard error is closed
            yield
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
            yield
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)


def _refused(files: list[Path], cause: str) -> FileRefused:
    files_text = files[0] if len(files) == 1 else f"one of {files[0]} and {len(files) - 1} others"
    words = " ".join(cause.split())[:_SHOWN_MAX]
    return FileRefused(f"{files_text}: not a usable Parquet table: {words}")


_SHOWN_MAX = 120


def _check_columns(table: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> None:
    """Raises ValueError for a column of another type or with non-finite numbers."""
    # one call, because each access to the schema builds it again
    for column in table.get_columns():
        name, kind = column.name, _kind_of(column.dtype)
        expected = _kind_of(schema[name]) if name in schema else kind
        if kind not in (expected, "nothing"):
            raise ValueError(f"the column {name} has {kind}, expected {expected}")
        if column.dtype.is_float() and not column.is_finite().all():  # nulls are ignored
            raise ValueError(f"the column {name} contains a value that is not a finite number")


def _kind_of(of: pl.DataType) -> str:
    import polars as pl

    if of.is_numeric():
        return "numbers"
    if isinstance(of, pl.String | pl.Enum | pl.Categorical):
        return "text"
    if isinstance(of, pl.Boolean):
        return "true and false"
    return "nothing" if isinstance(of, pl.Null) else "something else"
