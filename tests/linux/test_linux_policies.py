# SPDX-License-Identifier: MIT
"""Tests every policy on a real kernel, in one guest of two CPUs: loading, switches under load,
shares."""

from __future__ import annotations

import signal
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from schedlab import trace
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.machines.linux.guest import KVM, GuestJob, boot
from schedlab.machines.linux.parts import archive_contents, build_linux, build_programs_archive
from schedlab.paths import BUILD_FOLDER
from schedlab.trace import AttributeKind, BlockReason, GroupField, Kind, MarkKind

pytestmark = [pytest.mark.long, pytest.mark.linux, pytest.mark.xdist_group("linux-policies")]
"""tests/sched_ext/test_our_policies.py runs the same programs, without the kernel's verifier."""

TURN = "0.15"
"""Seconds of guest time per policy."""

PROGRAMS = ("observed", "inversion", "long_exit")
"""Programs from this test's folder."""

WEIGHTS = (1, 3, 6)
IDEAL = (0.25, 0.75, 1.0)
"""Ideal shares of two CPUs for these weights; no thread can use more than one CPU."""


@pytest.fixture(scope="module")
def choices() -> list[str]:
    """Policies and presets that become active under load, then the fair class, then the first policy again."""
    names = [
        name
        for policy in read_catalogue().values()
        if policy.number is not None
        for name in (policy.name, *(f"{policy.name}:{preset}" for preset in policy.presets))
    ]
    return [*names, "fair", names[0]]


@pytest.fixture(scope="module")
def left(choices: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the script.

    Time is not emulated: when QEMU before 8.1 counts instructions, it may stop one of two CPUs for
    longer than the kernel tolerates.
    """
    build_programs_archive()
    build_linux("linux-observed")
    loaded = {source_of(choice): choice for choice in choices if choice != "fair"}
    variables = (
        f"LOADED='{' '.join(loaded.values())}'\nPOLICIES='{' '.join(choices)}'\nTURN={TURN}\n"
    )
    job = GuestJob(
        files={
            **archive_contents(),
            **{name: BUILD_FOLDER / "linux-tests" / name for name in PROGRAMS},
        },
        script=variables + (ROOT / "tests" / "linux" / "policies.sh").read_text(),
        programs=(),
        cpus=2,
        repeatable=False,
        memory_mib=1536,  # most of it for the trace of all policies
        limit_s=900,
    )
    outcome = boot(job, tmp_path_factory.mktemp("guest"))
    assert outcome.finished, outcome.message
    (outcome.results / "mode").write_text(outcome.mode)
    return outcome.results


def source_of(choice: str) -> str:
    """Returns the name of the BPF source, which for presets of a study is the study's source."""
    policy, _, preset = choice.partition(":")
    studies = (ROOT / "policies/studies").glob(f"study-{policy}*.c")
    study_names = (study.stem for study in studies if f'{{"{preset}",' in study.read_text())
    return next(study_names, policy).replace("-", "_")


def test_policies_switch_during_work(left: Path, choices: list[str]) -> None:
    lines = (left / "policies").read_text().splitlines()
    assert len(lines) == len(choices), lines
    for line, choice in zip(lines, choices, strict=True):
        name, _, seen = line.partition(": ")
        assert name == choice
        if choice == "fair":
            assert seen.startswith("disabled Policy: fair "), line
            assert "Fair class since" not in seen
        else:
            assert seen.startswith(f"enabled schedlab_{source_of(choice)} Policy: {choice} "), line


def test_the_trace_of_all_that_can_have_happened(left: Path) -> None:
    """The trace includes the queues' levels, while all changes of queues and waiting happen at
    once."""
    recording = trace.read(left / "trace.bin")
    assert (recording.lost, recording.truncated) == (0, False)
    trace.validate(recording)
    queued = recording.events.filter(pl.col("kind") == Kind.QUEUED)
    assert queued["first"].n_unique() == 2
    assert queued["second"].n_unique() > 2


def test_a_process_has_ended_before_its_parent_hears_of_it(left: Path) -> None:
    """The waiting parent may continue at once on another CPU, and end the program.

    Only events before the first `timeout` count: its vfork() returns before the child ends.
    """
    recording = trace.read(left / "trace.bin")
    names = trace.event_table(recording).with_row_index("row").filter(pl.col("kind") == "EXEC")
    first_timeout = names.filter(pl.col("text") == "timeout")["row"][0]
    events = recording.events.with_row_index("row").filter(pl.col("row") < first_timeout)

    def rows(kind: Kind) -> pl.DataFrame:
        return events.filter(pl.col("kind") == kind)

    forks = rows(Kind.FORK).select(parent="process", child="first")
    waits = rows(Kind.BLOCK).select("row", parent="process", reason="first")
    acts = [Kind.BLOCK, Kind.YIELD, Kind.FORK, Kind.EXEC, Kind.EXIT]
    later = events.filter(pl.col("kind").is_in(acts)).select("row", "kind", child="process")
    woken = (
        rows(Kind.WAKEUP)
        .select("row", parent="process", child="first")
        .join(forks, on=["parent", "child"], how="semi", maintain_order="left")
        .join_asof(waits, on="row", by="parent", check_sortedness=False)
        .filter(pl.col("reason") == BlockReason.CHILD)
        .join_asof(later, on="row", by="child", strategy="forward", check_sortedness=False)
    )
    assert len(woken) > 50
    assert woken.filter(pl.col("kind") == Kind.EXIT).is_empty()


def test_allowed_cpus_of_a_thread_are_in_the_trace(left: Path) -> None:
    """An invariant, checked above, is that no thread runs outside its CPUs; this test checks the
    masks."""
    table = trace.event_table(trace.read(left / "trace.bin"))
    sets = table.filter(pl.col("kind") == "AFFINITY")
    assert set(sets["first"]) == {0}
    cpu_masks = sets.filter(pl.col("process") == int((left / "bound").read_text()))[
        "second"
    ].to_list()
    assert len(cpu_masks) > 10
    assert cpu_masks == [(1, 2, 3)[turn % 3] for turn in range(len(cpu_masks))]
    existing_threads = table.filter(pl.col("kind") == "FOUND").select("process", name="text")
    alone = dict(sets.join(existing_threads, on="process").select("name", "second").iter_rows())
    assert (alone["[migration/0]"], alone["[migration/1]"]) == (1, 2)


def test_scheduler_visits_appear_only_with_separate_clocks(
    left: Path,
) -> None:
    """Without separate clocks, a visit would include the other CPU's time."""
    recording = trace.read(left / "trace.bin")
    assert recording.has(Kind.SCHEDULER_EXIT) == ((left / "mode").read_text() == KVM)


def test_the_kernel_has_nothing_to_complain_of(left: Path) -> None:
    assert (left / "complaints").read_text() == ""


def test_a_thread_that_changes_its_pid_by_exec_is_not_lost(left: Path) -> None:
    assert (left / "observed").read_text() == "status: 0\n"


def test_a_process_that_takes_long_to_end_shares_its_cpu(left: Path) -> None:
    """A process that waits for the CPU runs in between, unless the exit takes less than some
    slices.

    (The exit may even depend on that process.)
    """
    events = trace.read(left / "trace.bin").events.with_row_index("row")
    notes = events.filter((pl.col("kind") == Kind.MARK) & (pl.col("first") == MarkKind.NOTE))
    ((process, begin),) = notes.select("process", "row").iter_rows()
    process_events = events.filter(pl.col("process") == process)
    child = process_events.filter(pl.col("kind") == Kind.FORK)["first"][-1]
    (end,) = process_events.filter((pl.col("kind") == Kind.EXIT) & (pl.col("row") > begin))["row"]
    between = events.filter(pl.col("row").is_between(begin, end))
    turns = between.filter((pl.col("kind") == Kind.SWITCH) & (pl.col("process") == child))
    times = between["time_ns"].to_list()
    took_ns = max(times) - min(times)
    assert len(turns) > 0 or took_ns < 100_000_000


def test_owners_of_locks_inherit_from_those_that_wait_for_them(left: Path) -> None:
    """Compares the medium thread's progress before a high-priority thread gets a lock, in
    thousandths.

    The high-priority thread waits behind a low-priority one, without and with inheritance.
    """
    without, inherited = (int(line) for line in (left / "inversion").read_text().split())
    assert without > 500
    assert inherited < 100


def test_a_process_that_the_policy_wants_killed_is_killed(left: Path) -> None:
    assert (left / "doomed").read_text() == f"status: {128 + signal.SIGKILL}\n"


def shares(left: Path, policy: str) -> list[float]:
    """Returns the CPUs that each hog used."""
    begin = [int(line) for line in (left / f"{policy}.begin").read_text().split()]
    end = [int(line) for line in (left / f"{policy}.end").read_text().split()]
    ran = [after - before for before, after in zip(begin, end, strict=True)]
    return [2 * time / sum(ran) for time in ran]


@pytest.mark.parametrize("policy", ["wrr", "lottery"])
def test_shares_are_roughly_those_of_the_weights(left: Path, policy: str) -> None:
    # Draws of a few hundred slices deviate by some points; a policy without weights deviates by 40.
    assert shares(left, policy) == pytest.approx(IDEAL, abs=0.1)


def test_study_5s_commands(left: Path) -> None:
    """A PID that does not exist is accepted, and a stray priority counts as 5 (section 3.6.2)."""
    accepted, refused, row = (left / "study-5").read_text().splitlines()
    assert (accepted, refused, row.split()[3]) == ("accepted", "refused", "5")


def test_users_groups_and_control_groups_have_their_shares(left: Path) -> None:
    """A user's group and a control group have a quota of 0.2 CPUs; two others share the rest 1 to
    3."""
    limited_share, *of_first_and_second, third = shares(left, "hsfq")
    assert [limited_share, third] == [pytest.approx(0.2, abs=0.1)] * 2
    first, second = sum(of_first_and_second[:2]), sum(of_first_and_second[2:])
    assert second / first == pytest.approx(3, abs=1)


def test_moved_thread_counts_in_its_control_group_at_once(left: Path) -> None:
    """The quota of the old group would limit it to 0.2 CPUs."""
    limited_share, *of_first, _, _, moved = shares(left, "hsfq-moved")
    assert limited_share == pytest.approx(0.2, abs=0.1)
    assert moved == pytest.approx(0.45, abs=0.15)
    assert sum(of_first) == pytest.approx(0.45, abs=0.15)


@pytest.mark.parametrize("policy", ["wrr-groups", "lottery-groups"])
def test_control_groups_have_their_shares_under_policies_with_a_tunable(
    left: Path, policy: str
) -> None:
    """The second control group has weight 300, all others have 100. These policies know no
    quotas."""
    of_user, *of_threads, third = shares(left, policy)
    first, second = sum(of_threads[:2]), sum(of_threads[2:])
    assert [of_user, first, second, third] == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3], abs=0.15)


def test_groups_are_listed(left: Path) -> None:
    """A number refers to a user's group or a control group."""
    refused, busy, *listed = (left / "group").read_text().splitlines()
    assert refused.startswith("group 2: as parent a lower number; as weight 1 to 10000; ")
    assert busy.startswith("group 9 is a control group (see sched_status); set it in its files")
    unset = [f"Group {number}: parent 0, weight 100, no quota" for number in range(9)]
    assert listed == [
        unset[0],
        "Group 1: parent 0, weight 300, no quota",
        "Group 2: parent 0, weight 100, quota 20000 of 100000 us",
        *unset[3:],
        "Group 9: parent 0, weight 300, no quota",
        "Group 10: parent 0, weight 100, quota 20000 of 100000 us",
        *(
            f"Group {8 + index} is the control group {n}"
            for index, n in enumerate(("first", "second", "third"))
        ),
    ]
    events = trace.read(left / "trace.bin").events
    group_events = events.filter(pl.col("kind") == Kind.TASK_GROUP)
    fields = set(group_events.select("process", "first", "second").iter_rows())
    assert {
        (2, GroupField.QUOTA, 20_000_000),
        (1, GroupField.WEIGHT, 300),
        (9, GroupField.WEIGHT, 300),
        (10, GroupField.QUOTA, 20_000_000),
    } <= fields
    of_moved = events.filter(
        (pl.col("kind") == Kind.ATTRIBUTE)
        & (pl.col("process") == int((left / "moved").read_text()))
        & (pl.col("first") == AttributeKind.TASKGROUP)
    )
    assert of_moved["second"].to_list()[-3:] == [10, 9, 0]


def test_the_fair_class_has_all_again(left: Path) -> None:
    assert (left / "ended").read_text() == "disabled\n"
