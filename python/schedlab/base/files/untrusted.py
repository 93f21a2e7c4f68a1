# SPDX-License-Identifier: MIT
"""Reads JSON and Parquet files that may be damaged or forged, and checks every value.

Raises FileRefused with the file's name and the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from schedlab.base.display.terminal import stderr_lock
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused

if TYPE_CHECKING:
    import polars as pl

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Field:
    """What values a member of a JSON object may have."""

    expected: str
    """Description of valid values, for error messages."""
    sound: Check
    required: bool = False
    """True if the member may not be missing or null."""

    def allows(self, value: object) -> bool:
        """Returns whether the member may have this value; None means missing or null."""
        return not self.required if value is None else self.sound(value)


# --- kinds of values


def text_field(*, required: bool = False, allow_empty: bool = True) -> Field:
    """Describes a text, which `allow_empty` allows to be ""."""
    return Field(
        "a text" if allow_empty else "a text that is not empty",
        lambda value: isinstance(value, str) and (allow_empty or bool(value.strip())),
        required,
    )


def flag_field(*, required: bool = False) -> Field:
    """True or false."""
    return Field("true or false", lambda value: isinstance(value, bool), required)


def integer_field(minimum: int, maximum: int, *, required: bool = False) -> Field:
    """Describes an integer from `minimum` to `maximum`, both included."""
    return Field(
        f"a whole number from {minimum} to {maximum}",
        lambda value: _is_integer(value, minimum, maximum),
        required,
    )


def number_field(*, required: bool = False) -> Field:
    """Describes a non-negative number below 1e18."""
    return Field(
        "a number from 0 on",
        lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
        ),
        required,
    )


def mapping_field(value_names: str, sound: Check, *, required: bool = False) -> Field:
    """Describes an object with any keys, whose values satisfy `sound`; `value_names` names the values."""
    return Field(
        f"an object: {value_names} by their names",
        lambda value: isinstance(value, dict) and all(map(sound, value.values())),
        required,
    )


def list_field(item_names: str, sound: Check, *, required: bool = False) -> Field:
    """Describes a list whose items satisfy `sound`; `item_names` names the items."""
    return Field(
        f"a list of {item_names}",
        lambda value: isinstance(value, list) and all(map(sound, value)),
        required,
    )


def _is_integer(value: Any, minimum: int, maximum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


# --- JSON

_RESTORE_FIX = "restore the file, or repeat the command that made it"


def read_object(path: Path, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Reads a JSON object, and checks the members in `fields`; other members are not checked."""
    content = _parse_json(path)
    if not isinstance(content, dict):
        raise FileRefused("expected a JSON object", what=str(path), fix=_RESTORE_FIX)
    return check_members(path, content, fields)


def check_members(
    path: Path, content: Mapping[str, Any], fields: Mapping[str, Field]
) -> dict[str, Any]:
    """Checks the members of an object that was read from `path`."""
    members: dict[str, Any] = {key: value for key, value in content.items() if value is not None}
    for key, field in fields.items():
        if key not in members:
            if field.required:
                raise FileRefused(
                    f"{key} is missing: expected {field.expected}", what=str(path), fix=_RESTORE_FIX
                )
        elif not field.sound(members[key]):
            shown = json.dumps(members[key])[:40]
            raise FileRefused(
                f"{key}: {shown}: expected {field.expected}", what=str(path), fix=_RESTORE_FIX
            )
    # A null that no Field describes may have a meaning, so it is kept.
    return {key: value for key, value in content.items() if key in members or key not in fields}


def _parse_json(path: Path) -> Any:
    try:
        content = json.loads(read_text(path), parse_constant=_reject_constant)
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise FileRefused(
            "too many nested { and [ in the JSON", what=str(path), fix=_RESTORE_FIX
        ) from None
    except UnicodeEncodeError:
        raise FileRefused(
            "a text contains half a character (a surrogate)", what=str(path), fix=_RESTORE_FIX
        ) from None
    except ValueError as error:  # JSONDecodeError, or a number of thousands of digits
        raise FileRefused(f"not valid JSON: {error}", what=str(path), fix=_RESTORE_FIX) from None
    return content


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


# --- Parquet


def read_tables(
    paths: Iterable[Path],
    schema: Mapping[str, pl.DataType],
    add_missing: bool = True,
    **options: Any,
) -> pl.DataFrame:
    """Reads the rows of several Parquet files into one table.

    Checks that each column in `schema` has values of the right kind: text, truth, or finite
    numbers. `add_missing`: adds columns that a file lacks, filled with null. `options`: further arguments
    of polars.read_parquet().
    """
    import polars as pl

    files = list(paths)
    try:
        with _quiet():
            table = pl.read_parquet(files, glob=False, **options)
        _check_columns(table, schema)
    except (pl.exceptions.SchemaError, pl.exceptions.ColumnNotFoundError):
        if len(files) > 1:  # files of different schedlab versions
            tables = [
                read_tables([path], schema, add_missing=add_missing, **options) for path in files
            ]
            return pl.concat(tables, how="diagonal_relaxed")
        raise _unusable_table(
            files, "columns are missing, or of another type than they must have"
        ) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _unusable_table(files, str(error)) from None
    missing = [name for name in schema if name not in table.columns] if add_missing else []
    return table.with_columns(pl.lit(None, schema[name]).alias(name) for name in missing)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses standard error within the block.

    If Polars panics on a file, Rust prints a message before Python gets an exception. Messages of
    other threads wait for the end of the block.
    """
    with stderr_lock:
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


def table_of(
    path: Path, columns: Mapping[str, list[Any]], schema: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Returns the table with these columns, which were read from the JSON file `path`.

    Checks the values as `read_tables` does. Columns that are missing are null; columns that are not
    in `schema` are left out.
    """
    import polars as pl

    rows = max(map(len, columns.values()), default=0)
    try:
        table = pl.DataFrame({name: columns.get(name, [None] * rows) for name in schema}, schema)
        _check_columns(table, schema)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise _unusable_table([path], str(error)) from None
    return table


def _unusable_table(files: list[Path], cause: str) -> FileRefused:
    files_text = files[0] if len(files) == 1 else f"one of {files[0]} and {len(files) - 1} others"
    cause_text = " ".join(cause.split())[:_SHOWN_MAX]
    return FileRefused(f"not a usable table: {cause_text}", what=str(files_text), fix=_RESTORE_FIX)


_SHOWN_MAX = 120


def _check_columns(table: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> None:
    """Raises ValueError for a column of another type or with non-finite numbers."""
    # a single call, because each access to the schema builds it again
    for column in table.get_columns():
        name, kind = column.name, _type_text(column.dtype)
        expected = _type_text(schema[name]) if name in schema else kind
        if kind not in (expected, "nothing"):
            raise ValueError(f"the column {name} has {kind}, expected {expected}")
        if column.dtype.is_float() and not column.is_finite().all():  # nulls are ignored
            raise ValueError(f"the column {name} contains a value that is not a finite number")


def _type_text(dtype: pl.DataType) -> str:
    import polars as pl

    if dtype.is_numeric():
        return "numbers"
    if isinstance(dtype, pl.String | pl.Enum | pl.Categorical):
        return "text"
    if isinstance(dtype, pl.Boolean):
        return "true and false"
    return "nothing" if isinstance(dtype, pl.Null) else "something else"
