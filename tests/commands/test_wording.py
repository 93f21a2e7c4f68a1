# SPDX-License-Identifier: MIT
"""Tests that errors name parameters as Python does, and that the command line names options
instead."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import schedlab as library
from conftest import Command
from schedlab.commands.wording import with_options
from schedlab.errors import SchedlabError, WrongUsage, format_parameter
from schedlab.monitor.systems.linux_guest import LinuxError
from schedlab.monitor.systems.steering import GuestError
from schedlab.trace.errors import TraceError


@pytest.mark.parametrize(
    ("why", "fields", "text"),
    [
        ("too many", {}, "too many"),
        ("too many", {"what": "`cpus=5`"}, "`cpus=5`: too many"),
        ("too many", {"what": "x", "fix": "take 4"}, "x: too many; take 4"),
        ("too many", {"fix": "Take 4"}, "too many. Take 4"),
        ("the scheduler is missing", {"fix": "name it"}, "the scheduler is missing; name it"),
    ],
)
def test_the_text_of_an_error(why: str, fields: dict[str, str], text: str) -> None:
    assert str(SchedlabError(why, **fields)) == text


def subclasses(of: type[SchedlabError]) -> Iterator[type[SchedlabError]]:
    yield of
    for subclass in of.__subclasses__():
        yield from subclasses(subclass)


def test_errors_keep_their_fields_between_processes() -> None:
    for kind in set(subclasses(SchedlabError)) - {GuestError, LinuxError, TraceError}:
        error = pickle.loads(pickle.dumps(kind("why", what="what", fix="fix")))
        assert type(error) is kind
        assert (error.why, error.what, error.fix) == ("why", "what", "fix")
    for special in (GuestError("pause", 3), LinuxError("pause", 3), TraceError("cut off")):
        assert str(pickle.loads(pickle.dumps(special))) == str(special)
    assert str(LinuxError("pause", 3, "no")) == "pause: no"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("cpus", 5, "--cpus 5"),
        ("cpus", None, "--cpus"),
        ("seeds", 10, "--runs 10"),
        ("ignore_limits", True, "--ignore-limits"),
        ("tick_ns", 4_000_000, "--tick 4ms"),
        ("settings", {"slice": 0}, "--set slice=0"),
        ("out", Path("my runs"), "--out 'my runs'"),
        ("workload", "a`b` `cpus=1`\\", "--workload 'a`b` `cpus=1`\\'"),
        ("workload", "it's\x1b[2J", '--workload "it\'s\\x1b[2J"'),
        ("unheard_of", 5, "`unheard_of=5`"),
    ],
)
def test_a_parameter_becomes_an_option(name: str, value: Any, shown: str) -> None:
    assert with_options(f"a {format_parameter(name, value)}: b `c`") == f"a {shown}: b `c`"


def test_who_called_from_python_reads_parameters() -> None:
    with pytest.raises(WrongUsage) as caught:
        library.run("mixed", machine="spike", cpus=500)
    assert caught.value.what == "`cpus=500`"
    assert "`machine='sim'`" in caught.value.fix


def test_who_called_from_the_command_line_reads_options(schedlab: Command) -> None:
    result = schedlab("run", "--machine", "spike", "--cpus", "500")
    assert "--cpus 500: " in result.stderr
    assert result.stderr.endswith("; choose a number in this range, or use --machine sim\n")
