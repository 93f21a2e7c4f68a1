# SPDX-License-Identifier: MIT
"""Tests sched_ext schedulers as policies of the simulator: names, arguments, images and refusals."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.base.files.json_lines import Node, Object
from schedlab.base.toolchain.policies import (
    PolicyChoice,
    parse_choices,
)
from schedlab.errors import WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.published import IMAGE_FILE, ignored_attributes
from schedlab.machines.spec import RunSpec
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab.sched_ext.image import decode
from schedlab.sweep import command
from schedlab.sweep.plan import SweepPlan
from schedlab.workload import workload_files
from scx_objects import object_bytes, write_object

WORKLOAD = '{"tasks": {"a": {"run": 1000}}}'


def run_of(policy: PolicyChoice, **settings: int) -> RunSpec:
    file = workload_files.parse_workload_text(WORKLOAD, Path("one.json"), ())
    return RunSpec(
        "one.json",
        policy,
        tuple(settings.items()),
        2,
        machine_named("sim"),
        1,
        1_000_000,
        1_000_000_000,
        0,
        file=file,
    )


@pytest.fixture
def vtime(tmp_path: Path) -> PolicyChoice:
    (choice,) = parse_choices(f"scx:{write_object('vtime', tmp_path)}")
    return choice


@pytest.mark.parametrize(
    ("text", "preset"),
    [
        ("scx:bpfland", "bpfland"),
        ("scx:./my.bpf.o", "./my.bpf.o"),
        ("scx:My_Own-1.bpf.o", "My_Own-1.bpf.o"),
        ("scx:/opt/bin/scx_lavd", "/opt/bin/scx_lavd"),
    ],
)
def test_a_policy_names_a_program_or_a_file(text: str, preset: str) -> None:
    assert parse_choices(f"rr,{text}") == (PolicyChoice("rr"), PolicyChoice("scx", preset))


@pytest.mark.parametrize("text", ["rr:./my.bpf.o", "scx:a:b.o", "scx:a b.o", "scx:My"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        parse_choices(text)


def test_arguments_have_the_hash_but_no_path(vtime: PolicyChoice, tmp_path: Path) -> None:
    words = machine_named("sim").arguments(run_of(vtime, slice_ns=3_000_000))
    assert shlex.split(words, comments=True)[:2] == ["--policy", f"scx:{IMAGE_FILE}"]
    assert "# vtime, SHA-256 " in words
    assert "--set" not in words
    assert "slice_ns=3000000" in words, "it identifies the run"
    assert str(tmp_path) not in words


def test_the_image_is_in_the_folder_and_has_the_settings(
    vtime: PolicyChoice, tmp_path: Path
) -> None:
    folder, scratch = tmp_path / "run", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    parts = {"simulator": tmp_path / "schedlab-sim"}
    machine_named("sim").prepare_command(run_of(vtime, slice_ns=3_000_000), parts, folder, scratch)
    image = decode((folder / IMAGE_FILE).read_bytes())
    (variable,) = (entry for entry in image.variables if image.text_of(entry.name) == "slice_ns")
    (region,) = (region for region in image.regions if region.number == variable.region)
    at = region.data + variable.offset
    assert int.from_bytes(image.data[at : at + 8], "little") == 3_000_000
    assert image.cpus == 2


def test_plans_are_checked(
    vtime: PolicyChoice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_policies({}, Plan(tmp_path, (run_of(vtime), replace(run_of(vtime), seed=2))))
    assert capsys.readouterr().err.count("these settings stay 0: slice_ns") == 1
    with pytest.raises(WrongUsage, match="no variable slize_ns; did you mean slice_ns"):
        check_policies({}, Plan(tmp_path, (run_of(vtime, slize_ns=1),)))
    absent = PolicyChoice("scx", str(tmp_path / "absent.bpf.o"))
    with pytest.raises(WrongUsage, match=r"absent\.bpf\.o"):
        check_policies({}, Plan(tmp_path, (run_of(absent),)))
    with pytest.raises(WrongUsage, match="the scheduler is missing"):
        check_policies({}, Plan(tmp_path, (run_of(PolicyChoice("scx")),)))
    damaged = tmp_path / "damaged.bpf.o"
    damaged.write_bytes(object_bytes("fifo")[:5000])
    with pytest.raises(WrongUsage, match=r"damaged.bpf.o: .*compile the object again"):
        check_policies({}, Plan(tmp_path, (run_of(PolicyChoice("scx", str(damaged))),)))


def test_a_scheduler_sees_only_what_linux_has(vtime: PolicyChoice) -> None:
    assert ignored_attributes(run_of(vtime), ["nice", "tickets", "taskgroup", "deadline"]) == [
        "tickets",
        "deadline",
    ]
    assert ignored_attributes(run_of(PolicyChoice("rr")), ["nice", "tickets"]) == [
        "nice",
        "tickets",
    ]


def test_hotplug_needs_a_sched_ext_scheduler(vtime: PolicyChoice, tmp_path: Path) -> None:
    text = WORKLOAD.replace('"run"', '"offline": 1, "run"')
    file = workload_files.parse_workload_text(text, Path("one.json"), ())
    assert file.cpus_missing(1) == "1"
    assert not file.cpus_missing(2)
    run = replace(run_of(vtime), file=file)
    check_policies({}, Plan(tmp_path, (run,)))
    for refused in (
        replace(run, policy=PolicyChoice("rr")),
        replace(run, machine=machine_named("spike")),
    ):
        with pytest.raises(WrongUsage, match="only sched_ext schedulers in the simulator support"):
            check_policies({}, Plan(tmp_path, (refused,)))


def swept(policy: PolicyChoice, machine: str = "sim") -> SweepPlan:
    options: dict[str, str | int] = {
        "workloads": "mixed",
        "machines": machine,
        "cpus": 1,
        "seeds": 1,
    }
    nodes = {name: Node(value, 0, f"--{name}") for name, value in options.items()}
    values = Node(Object((("slice_ns", Node("1000000,2000000", 0, "--set")),)), 0, "--set")
    entry = Object((("policy", Node(str(policy), 0, "--policy")), ("set", values)))
    nodes["policies"] = Node((Node(entry, 0, "--policy"),), 0, "--policy")
    return command.plan_sweep(None, nodes)


def test_a_sweep_varies_the_settings_of_a_scheduler(vtime: PolicyChoice) -> None:
    plan = swept(vtime)
    assert [dict(point.run.settings) for point in plan.points] == [
        {"slice_ns": 1_000_000},
        {"slice_ns": 2_000_000},
    ]
    assert len({point.run.machine.arguments(point.run) for point in plan.points}) == 2
    command.check_sched_ext_schedulers(plan, on_cluster=False)
    with pytest.raises(WrongUsage, match="workers of a cluster lack the object"):
        command.check_sched_ext_schedulers(plan, on_cluster=True)
    with pytest.raises(WrongUsage, match="on the simulator only, not on spike"):
        command.check_sched_ext_schedulers(swept(vtime, "spike"), on_cluster=False)


def test_a_hostile_name_adds_no_arguments(tmp_path: Path) -> None:
    """The name is printed, and follows the arguments as a comment."""
    name = b"x\n--save /tmp/y"
    content = object_bytes("fifo")
    place = content.index(b"fifo" + bytes(100))
    hostile = tmp_path / "hostile.bpf.o"
    hostile.write_bytes(content[:place] + name + content[place + len(name) :])
    with pytest.raises(WrongUsage, match=r"name .* of the scheduler: Linux allows"):
        check_policies({}, Plan(tmp_path, (run_of(PolicyChoice("scx", str(hostile))),)))
