# SPDX-License-Identifier: MIT
"""Tests the recipes of docs/sweeps.md: the SLURM job, with stand-ins for its programs, and
SQL on a data set.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, Command
from schedlab.commands import sweep as sweep_command
from test_sweep_best import MS, swept, turnarounds

JOB = ROOT / "sweeps" / "on-slurm.sh"
STANDS_IN = """#!/bin/sh
echo "$*" >>calls
case $* in
"dask "*) exec sleep 60 ;;
*) while [ "$(grep -c ^dask calls)" != 2 ]; do sleep 0.05; done; exit 3 ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path) -> dict[str, list[str]]:
    """Returns the job's calls of ./schedlab, by their first words; srun runs its command here."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for path, text in (
        (programs / "srun", '#!/bin/sh\nexec "$@"\n'),
        (programs / "hostname", "#!/bin/sh\necho node1\n"),
        (tmp_path / "schedlab", STANDS_IN),
    ):
        path.write_text(text)
        path.chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin", "HOME": "/home/a b", "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_CPUS_PER_TASK": "32", "SLURM_JOB_ID": "7",
    }  # fmt: skip
    result = subprocess.run(
        ["bash", str(JOB), "my sweep.yaml"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (3, ""), "the sweep's own status"
    lines = (tmp_path / "calls").read_text().splitlines()
    return {" ".join(re.findall(r"^(?:dask )?\w+", line)): line.split() for line in lines}


def test_job_starts_existing_parts(calls: dict[str, list[str]]) -> None:
    assert set(calls) == {"dask scheduler", "dask worker", "sweep"}
    for name, words in calls.items():
        given = {word for word in words if word.startswith("--")} - {"--certificate"}
        known = {option for parameter in sweep_command.sweep.params for option in parameter.opts}
        if name != "sweep":
            completed = subprocess.run(
                [sys.executable, "-m", *name.split(), "--help"],
                capture_output=True,
                text=True,
                check=True,
            )
            known = set(re.findall(r"--[\w-]+", completed.stdout))
        assert given and given <= known, name
    assert "tls://node1:8786" in calls["dask worker"] and "tls://node1:8786" in calls["sweep"]
    assert calls["sweep"][:3] == ["sweep", "my", "sweep.yaml"]


def test_page_queries_use_existing_columns(tmp_path: Path, schedlab: Command) -> None:
    folder = swept(tmp_path / "set", turnarounds({"a=1": [MS]}))
    text = (ROOT / "docs" / "sweeps.md").read_text()
    queries = re.findall(r'\./schedlab query runs/tuned "(.*?[^\\])"$', text, re.S | re.M)
    assert len(queries) == 2
    for sql in queries:
        completed = schedlab("query", str(folder), sql.replace('\\"', '"'))
        assert completed.returncode == 0, completed.stderr
