# SPDX-License-Identifier: MIT
"""What `./schedlab dev bench deadlines` says where SimSo cannot be had."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schedlab.errors import MachineUnfit
from schedlab_tools.benchmarks import deadlines, peers


def test_an_installation_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Path:
        raise subprocess.CalledProcessError(1, ["pip"], stderr="no network")

    monkeypatch.setattr(peers, "environment", fails)
    with pytest.raises(MachineUnfit, match="simso does not run here: no network"):
        deadlines.compare([1], ())
