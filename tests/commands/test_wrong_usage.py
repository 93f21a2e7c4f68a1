# SPDX-License-Identifier: MIT
"""Tests that wrong usage ends with status 2 and a cause, before anything is fetched or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT, Command
from refused import refusal

MIXED = "workloads/files/study4-mixed.json"

RUN = [
    ("--cpus", "0", "1 to 1024"),
    ("--cpus", "4-1", "lowest first"),
    ("--cpus", "", "numbers and ranges"),
    ("--cpus", "1-8*1", "factor must be at least 2"),
    ("--policy", "rr,", "POLICY:PRESET"),
    ("--policy", "rr:a:b", "POLICY:PRESET"),
    ("--policy", "r", "'rr'"),
    ("--policy", "rr:table", "'table-scan'"),
    ("--set", "slice", "NAME=VALUE"),
    ("--set", "slice=0", "1 to 1000"),
    ("--machine", "bochs", "'qemu'"),
    ("--runs", "0", "1<=x<=10000"),
    ("--seed", str(2**63), "0<=x"),
    ("--tick", "10", "ns, us, ms, s, min or h"),
    ("--tick", "1us", "100us to 1s"),
    ("--limit", "1d", "ns, us, ms, s, min or h"),
    ("--memory", "1", "32<=x<=65536"),
    ("--workload", "", "program"),
    ("--workload", "a\nb", "ASCII"),
    ("--workload", "x" * 2000, "long"),
    ("--trust", "", "--trust"),
]


@pytest.mark.parametrize(("option", "value", "word"), RUN)
def test_a_wrong_value_is_named_with_what_is_allowed(
    tmp_path: Path, option: str, value: str, word: str
) -> None:
    message = refusal("run", "--out", str(tmp_path / "out"), option, value)
    assert option in message
    assert len(value) > 100 or value.strip() in message.replace("\\n", "\n")
    assert word in message
    assert not (tmp_path / "out").exists()


COMMANDS = [
    ("frobnicate", "frobnicate"),
    ("run surplus", "surplus"),
    ("run --set slice=1 --set slice=2", "--set"),
    ("trace /nowhere", "/nowhere"),
    ("boot --policy rr,rr:table-scan", "--policy"),
    ("boot --cpus 1-4", "--cpus"),
    ("boot --machine qemu --record /nowhere/at/all", "--record"),
    ("boot --record new --arguments trace=x", "which --record sets; leave trace out"),
    ("boot --machine spike --typed /nowhere/at/all", "/nowhere"),
    ("compare . . --yes", "--yes"),
    ("verify --seed 2 .", "--seed"),
    ("verify study-1 .", "study-1"),
    ("clean lunix", "'linux'"),
    ("clean spike --all", "--all"),
    ("new-policy model", "'model'"),
    ("policies r", "'rr'"),
    ("linux policy nosuch", "'nosuch'"),
    ("linux policy lottery:nosuch", "'nosuch'"),
    ("linux policy rr,wrr", "one"),
    ("linux serve --policy nosuch", "'nosuch'"),
    ("linux serve --trace-memory", "--trace"),
    ("linux serve --set slice", "NAME=VALUE"),
    ("linux boot --cpus 0", "range"),
    ("linux set 0 5", "range"),
    ("linux set 7 nice 5", "weight"),
    ("linux set 7 tickets weight 5", "one"),
    ("linux set 7 many", "'many'"),
    ("linux tunable slice=1 --json", "--json"),
    ("workloads no-such", "no-such"),
    ("workloads nothing.json", "nothing.json"),
    ("workloads --seed 2", "--seed"),
    (f"workloads {MIXED} --json", "--json"),
    (f"workloads {MIXED} --with tasks.no=3", "tasks.no"),
    ("replay --what-if empty --workload mixed", "'--workload'"),
    ("replay --what-if empty --seed 2", "--seed"),
    ("replay --what-if empty --policy no-such", "no-such"),
    ("replay --what-if empty", "empty"),
    ("replay --what-if headless", "only a trace"),
    ("dask scheduler", "certificate"),
    ("dask worker tcp://127.0.0.1:9", "certificate"),
    ("dask scheduler --dashboard-address=:8787", "certificate"),
    ("dask", "dask: expected"),
    ("dask ssh", "worker"),
    ("run --decide study", "seeds"),
    ("run --decide 2", "3 to 1000"),
    ("reproduce --decide 0.5.1s", "seeds"),
    ("run --machine sim --workload mixed --policy rr --decide", "--decide"),
]


@pytest.mark.parametrize(("words", "word"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workloads").symlink_to(ROOT / "workloads")
    (tmp_path / "empty").touch()
    (tmp_path / "headless").write_bytes(b"SCHEDLAB" + bytes(64))
    before = sorted(tmp_path.iterdir())
    assert word in refusal(*words.split())
    assert sorted(tmp_path.iterdir()) == before


def test_a_start_ends_with_status_2(schedlab: Command) -> None:
    result = schedlab("run", "--cpus", "0")
    assert (result.returncode, result.stdout) == (2, "")
    assert "--cpus" in result.stderr and "Traceback" not in result.stderr
