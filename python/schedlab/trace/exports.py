# SPDX-License-Identifier: MIT
"""Exports traces to formats of other programs."""

from enum import IntEnum
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from schedlab.base.display.names import write_csv
from schedlab.trace.format import (
    AttributeKind,
    BlockReason,
    DispatchCallback,
    GroupField,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
)
from schedlab.trace.model import Trace

Format = Literal["parquet", "csv", "perfetto"]

FORMATS: tuple[Format, ...] = get_args(Format)


def export(trace: Trace, path: str | Path, format: Format) -> None:  # noqa: A002
    """Writes a trace as Parquet or CSV (one row per record) or in Perfetto's format.

    Raises ValueError for another format, and OSError if the file cannot be written.
    """
    path = Path(path)
    if format == "parquet":
        event_table(trace).write_parquet(path)
    elif format == "csv":
        write_csv(event_table(trace), path)
    elif format == "perfetto":
        # Imported only here, because loading protobuf is slow.
        from schedlab.trace.perfetto import write_perfetto

        write_perfetto(trace, path)
    else:
        raise ValueError(f"unknown format {format!r}; choose from {', '.join(FORMATS)}")


def event_table(trace: Trace) -> pl.DataFrame:
    """Returns `trace.events` with names instead of numbers: kind, detail (a state, a reason …), text."""
    kinds = pl.Enum([kind.name for kind in Kind] + ["UNKNOWN"])
    kind_names = {int(kind): kind.name for kind in Kind}
    return (
        trace.events.with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .join(trace.texts, on="row", how="left", maintain_order="left")
        .with_columns(detail=_detail_expression())
        .with_columns(
            pl.col("kind").replace_strict(kind_names, default="UNKNOWN", return_dtype=kinds)
        )
        .select(
            "sequence", "time_ns", "cpu", "kind", "process", "detail", "text", "first", "second"
        )
    )


def _detail_expression() -> pl.Expr:
    """Returns an expression for the name of the number that some kinds of records contain."""
    kind, first, second = pl.col("kind"), pl.col("first"), pl.col("second")
    meanings: dict[Kind, tuple[pl.Expr, type[IntEnum]]] = {
        Kind.SWITCH: (second, ProcessState),
        Kind.FOUND: (first, ProcessState),
        Kind.BLOCK: (first, BlockReason),
        Kind.PREEMPT: (first, PreemptReason),
        Kind.ATTRIBUTE: (first, AttributeKind),
        Kind.TASK_GROUP: (first, GroupField),
        Kind.DISPATCH: (first, DispatchCallback),
        Kind.KICK: (first, DispatchCallback),
        Kind.POLICY: (pl.col("process"), AttributeKind),
        Kind.TUNABLE: (pl.col("process"), AttributeKind),
        Kind.MARK: (first, MarkKind),
    }
    detail = pl.lit(None, pl.String)
    for of_kind, (number, enumeration) in meanings.items():
        named = {int(member): member.name.lower() for member in enumeration}
        meaning = number.replace_strict(named, default=None, return_dtype=pl.String)
        detail = pl.when(kind == of_kind).then(meaning).otherwise(detail)
    # PID 0, the idle process, has no state.
    return pl.when((kind != Kind.SWITCH) | (first != 0)).then(detail)
