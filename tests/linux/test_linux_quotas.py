# SPDX-License-Identifier: MIT
"""Quotas of control groups (cpu.max) under Linux's own fair class: `hsfq` does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from linux_guests import need_guests
from schedlab.machines.linux.guest import GuestJob, boot

SCRIPT = """
groups=/sys/fs/cgroup
echo +cpu >$groups/cgroup.subtree_control
mkdir $groups/held $groups/other
chrt --fifo --pid 80 $$
for group in held other; do
    chrt --other 0 sh -c 'while :; do :; done' &
    echo $! >$groups/$group/cgroup.procs
done
service() {
    for group in held other; do
        sed -n 's/^usage_usec //p' $groups/$group/cpu.stat
    done
}
measure() {
    service >/result/$1.begin
    sleep $2
    service >/result/$1.end
}
echo "40000 100000" >$groups/held/cpu.max
sleep 0.5
measure large 1
echo "10000 100000" >$groups/held/cpu.max
measure small 2
echo max >$groups/held/cpu.max
measure lifted 0.5
"""
"""Two groups of equal weight always compute on one CPU; the quota of one is lifted in the end."""


@pytest.mark.linux
@pytest.mark.long
def test_linux_gives_no_credit_for_time_without_a_quota(tmp_path: Path) -> None:
    need_guests()
    outcome = boot(GuestJob(script=SCRIPT, programs=(), limit_s=60), tmp_path / "guest")
    assert outcome.finished, outcome.message

    def part(name: str) -> float:
        """What the group with the quota had of all that both had."""
        begin, end = (
            [int(line) for line in (outcome.results / f"{name}.{when}").read_text().split()]
            for when in ("begin", "end")
        )
        held, other = (after - before for before, after in zip(begin, end, strict=True))
        return held / (held + other)

    assert part("large") == pytest.approx(0.4, abs=0.04)
    assert part("small") == pytest.approx(0.1, abs=0.03)
    assert part("lifted") == pytest.approx(0.5, abs=0.1)
