# SPDX-License-Identifier: MIT
"""Tests the message of `./schedlab dev bench deadlines` on a host without SimSo."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schedlab.errors import MachineUnfit
from schedlab_tools.benchmarks import deadlines


def test_failed_installation_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Path:
        raise subprocess.CalledProcessError(1, ["pip"], stderr="no network")

    monkeypatch.setattr(deadlines, "environment", fails)
    with pytest.raises(MachineUnfit, match="SimSo does not run here: no network"):
        deadlines.compare([1], ())
