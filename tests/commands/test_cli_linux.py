# SPDX-License-Identifier: MIT
"""What `./schedlab linux` refuses before anything is fetched, built or started."""

from __future__ import annotations

import pytest

from conftest import Command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("policy", "nosuch"), "no policy is called 'nosuch'"),
        (("policy", "lottery:nosuch"), "no preset of lottery is called 'nosuch'"),
        (("policy", "rr,wrr"), "one is in force at a time"),
        (("policy", "a b"), "not of the form POLICY or POLICY:PRESET"),
        (("serve", "--policy", "nosuch"), "no policy is called 'nosuch'"),
        (("serve", "--trace-memory"), "Name its file with --trace"),
        (("serve", "--trace-queues"), "Name its file with --trace"),
        (("serve", "--set", "slice"), "not of the form NAME=VALUE"),
        (("boot", "--policy", "nosuch"), "no policy is called 'nosuch'"),
        (("boot", "--cpus", "0"), "not in the range"),
        (("set", "0", "5"), "not in the range"),
        (("set", "7", "nice", "5"), "an attribute is one of priority, tickets, weight"),
        (("set", "7", "tickets", "weight", "5"), "one attribute and one value are wanted"),
        (("set", "7", "many"), "'many' is no whole number"),
        (("tunable", "slice=1", "--json"), "leave out --json"),
    ],
)
def test_wrong_usage(schedlab: Command, words: tuple[str, ...], message: str) -> None:
    done = schedlab("linux", *words)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
