# SPDX-License-Identifier: MIT
"""Defines the layout of workload files; generated from abi/ by ./schedlab dev docs trace-format."""

from __future__ import annotations

import numpy as np

MAGIC = "SCLDWORK"
VERSION = 2
LOOPS_MAX = 8
MARK_NAME = 5
HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("bytes", "<u8"),
        ("checksum", "<u8"),
        ("tick_ns", "<u8"),
        ("program_count", "<u4"),
        ("step_count", "<u4"),
        ("channel_count", "<u4"),
        ("text_count", "<u4"),
        ("text_bytes", "<u4"),
        ("reserved", "<u4"),
    ]
)
PROGRAM = np.dtype(
    [
        ("first", "<u4"),
        ("count", "<u4"),
        ("name", "<u4"),
        ("reserved", "<u4"),
    ]
)
STEP = np.dtype(
    [
        ("kind", "<u1"),
        ("detail", "<u1"),
        ("reserved", "<u2"),
        ("target", "<u4"),
        ("value", "<u8"),
    ]
)
FORMS = (
    ("run <value:time>", (0, 0, 0, 0)),
    ("run until <value:time>", (1, 0, 0, 0)),
    ("sleep <value:ticks>", (3, 0, 0, 0)),
    ("sleep <value:time>", (2, 0, 0, 0)),
    ("sleep until <value:time>", (4, 0, 0, 0)),
    ("timer <detail:own> <value:time>", (5, 0, 0, 0)),
    ("timer <detail:own> <value:time> absolute", (5, 0, 1, 0)),
    ("timer <target:timer> <value:time>", (19, 0, 0, 0)),
    ("timer <target:timer> <value:time> absolute", (19, 1, 0, 0)),
    ("job none", (21, 0, 2, 0)),
    ("job <detail:own> <value:time>", (21, 0, 0, 0)),
    ("job <detail:own> <value:time> absolute", (21, 0, 1, 0)),
    ("yield", (6, 0, 0, 0)),
    ("fork <target:program>", (7, 0, 0, 0)),
    ("arrive <value:time>", (23, 2, 0, 0)),
    ("arrive <target:program> <value:time>", (23, 0, 0, 0)),
    ("deliver <target:channel> <value:time>", (23, 1, 0, 0)),
    ("kill <target:program>", (17, 0, 0, 0)),
    ("wait", (8, 0, 0, 0)),
    ("wait all", (8, 1, 0, 0)),
    ("take <target:channel>", (9, 0, 0, 0)),
    ("take <target:channel> releasing <value:channel>+1", (9, 0, 0, 0)),
    ("lock <target:channel>", (9, 1, 0, 0)),
    ("lock <target:channel> ceiling <detail:level>+2", (9, 0, 0, 0)),
    ("give <target:channel>", (10, 0, 0, 1)),
    ("give <target:channel> all", (10, 0, 0, 0)),
    ("give <target:channel> waiting", (10, 1, 0, 1)),
    ("give <target:channel> <value:count>", (10, 0, 0, 0)),
    ("meet <target:channel> <value:count>", (18, 0, 0, 0)),
    ("priority <value:number>", (11, 1, 4294967295, 0)),
    ("priority <value:number> <target:program>", (11, 1, 4294967295, 0)),
    ("tickets <value:number>", (11, 2, 4294967295, 0)),
    ("tickets <value:number> <target:program>", (11, 2, 4294967295, 0)),
    ("weight <value:number>", (11, 3, 4294967295, 0)),
    ("weight <value:number> <target:program>", (11, 3, 4294967295, 0)),
    ("nice <value:signed>", (11, 4, 4294967295, 0)),
    ("nice <value:signed> <target:program>", (11, 4, 4294967295, 0)),
    ("slice <value:span>", (11, 5, 4294967295, 0)),
    ("slice <value:span> <target:program>", (11, 5, 4294967295, 0)),
    ("runtime <value:span>", (11, 6, 4294967295, 0)),
    ("runtime <value:span> <target:program>", (11, 6, 4294967295, 0)),
    ("deadline <value:span>", (11, 7, 4294967295, 0)),
    ("deadline <value:span> <target:program>", (11, 7, 4294967295, 0)),
    ("period <value:span>", (11, 8, 4294967295, 0)),
    ("period <value:span> <target:program>", (11, 8, 4294967295, 0)),
    ("taskgroup <value:number>", (11, 9, 4294967295, 0)),
    ("taskgroup <value:number> <target:program>", (11, 9, 4294967295, 0)),
    ("cpus <value:text>", (22, 0, 4294967295, 0)),
    ("cpus <value:text> <target:program>", (22, 0, 4294967295, 0)),
    ("setgroup <target:number> parent <value:number>", (20, 1, 0, 0)),
    ("setgroup <target:number> weight <value:number>", (20, 2, 0, 0)),
    ("setgroup <target:number> quota <value:span>", (20, 3, 0, 0)),
    ("setgroup <target:number> period <value:span>", (20, 4, 0, 0)),
    ("online <target:number>", (24, 1, 0, 0)),
    ("offline <target:number>", (24, 0, 0, 0)),
    ("group <value:label>", (12, 3, 0, 0)),
    ("mark begin", (12, 1, 0, 0)),
    ("mark end", (12, 2, 0, 0)),
    ("mark note <value:number>", (12, 4, 0, 0)),
    ("window <value:time>", (12, 6, 0, 0)),
    ("policy <target:text>", (13, 0, 0, 0)),
    ("set <target:text>", (14, 0, 0, 0)),
    ("loop", (15, 0, 0, 0)),
    ("loop <value:count>", (15, 0, 0, 0)),
    ("exit", (16, 0, 0, 0)),
    ("exit <value:number>", (16, 0, 0, 0)),
)
"""The words of each step, and its kind, detail, target and value."""
