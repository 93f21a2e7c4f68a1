# SPDX-License-Identifier: MIT
"""Reads, checks and exports event traces (docs/trace-format.md)."""

from schedlab.trace.errors import RecordName, TraceError
from schedlab.trace.exports import FORMATS, event_table, export
from schedlab.trace.format import (
    AttributeKind,
    BlockReason,
    DispatchCallback,
    GroupField,
    KickFlag,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
    annotation_text,
    mark_text,
)
from schedlab.trace.model import Header, Trace
from schedlab.trace.ordered import OrderedRecords, read_records
from schedlab.trace.outline import Outline, TraceFacts, open_outlined
from schedlab.trace.reader import read
from schedlab.trace.steps import sort_steps
from schedlab.trace.timeline import ProcessSteps, Step
from schedlab.trace.validation import check_records, validate

__all__ = [
    "FORMATS",
    "AttributeKind",
    "BlockReason",
    "DispatchCallback",
    "GroupField",
    "Header",
    "KickFlag",
    "Kind",
    "MarkKind",
    "OrderedRecords",
    "Outline",
    "PreemptReason",
    "ProcessState",
    "ProcessSteps",
    "RecordName",
    "Step",
    "Trace",
    "TraceError",
    "TraceFacts",
    "annotation_text",
    "check_records",
    "event_table",
    "export",
    "mark_text",
    "open_outlined",
    "read",
    "read_records",
    "sort_steps",
    "validate",
]
