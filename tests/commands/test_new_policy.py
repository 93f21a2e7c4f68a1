# SPDX-License-Identifier: MIT
"""Tests `./schedlab new-policy`: new policies work at once, and existing files stay unchanged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from policy_laws import keep_the_laws
from schedlab import trace
from schedlab.base.toolchain.build import MODEL_LIBRARY, SIMULATOR_LIBRARY, build
from schedlab.commands.new_policy import NAME_MAX, SOURCE_TEXT_MAX, create_policy
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE

NAMES = ("int", "my-own-2", "a-policy-of-24-characters"[:NAME_MAX])

pytestmark = pytest.mark.xdist_group("new-policy")

FOLDERS = ("abi", "bench", "explore", "kernel", "linux", "model", "page", "policies", "python", "sim", "spike",
           "studies", "tests", "tools", "user")  # fmt: skip


def copy_checkout(path: Path) -> Path:
    """Returns a writable copy of the checkout, including build results."""
    for folder in (*FOLDERS, "workloads", "build"):
        ignored = shutil.ignore_patterns("__pycache__", ".*_cache", "host-tests", "sim-*")
        shutil.copytree(ROOT / folder, path / folder, ignore=ignored, symlinks=True)
    for file in ("Makefile", "pyproject.toml", ".clang-format"):
        shutil.copy2(ROOT / file, path / file)
    return path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkout with new policies; build results of other policies come from this checkout."""
    build("kernel", "image", "simulator", SIMULATOR_LIBRARY, str(MODEL_LIBRARY.relative_to(ROOT)))
    place = copy_checkout(tmp_path_factory.mktemp("checkout"))
    for policy in ("pusher", "mover", "surveyor"):
        shutil.copy2(ROOT / f"tests/kernel_policies/{policy}.c", place / "policies")
    for name in NAMES:
        result = command(place, "-m", "schedlab", "new-policy", name, "--source", "Knuth 1968")
        assert result.returncode == 0, result.stderr
        assert f"Wrote policies/{name}.c and tests/host/policy_{name}_test.c." in result.stdout
        assert f"./schedlab run --policy {name}" in result.stdout
    return place


def command(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a checkout."""
    environment = {
        "PYTHONPATH": f"{path}/python:{path}/sim/python:{path}/tools",
        "PYTHONSAFEPATH": "1",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=path,
        env={**inherited(), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def inherited() -> dict[str, str]:
    """Returns the environment without pytest's variables."""
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def test_new_policies_keep_the_laws(checkout: Path, tmp_path: Path) -> None:
    policies = [checkout / "policies" / f"{name}.c" for name in ("rr", *NAMES)]
    summary = keep_the_laws(policies, tmp_path, seeds=1)  # all are round-robin with other names
    assert summary.startswith(f"{len(policies)} sources, ")


def test_new_policies_pass_all_policy_tests(checkout: Path) -> None:
    """The policies compile for the kernel and for BPF, and have the project's layout."""
    chosen = " or ".join([*NAMES[1:], "test_c_layout", "test_host_program"])
    result = command(
        checkout,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"),
        *(
            "tests/policies/test_targets.py",
            "tests/house/test_style.py",
        ),
        *(
            f"tests/host/test_host_programs.py::test_host_program[policy_{name}_test]"
            for name in NAMES
        ),
        *("-k", chosen),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    # Covers two compilations and a source check, the policies' tests, and the layout.
    expected = 3 * len(NAMES[1:]) + len(NAMES) + 1
    passed = int(result.stdout.rpartition(" passed")[0].split()[-1])
    assert passed >= expected, result.stdout


COMPILED_SHAPE = """
import json, sys
import numpy as np
from schedlab.analysis.agreement.plan import is_random, compared_policies
from schedlab_tools.benchmarks import linux_shares
from schedlab_tools.policy_cost import PolicyRow
from schedlab.monitor.system_factory import read_choices
from schedlab.monitor.model import Model
from schedlab.report.charts import theme
from schedlab.base.toolchain.policies import sort_policies, parse_choices
from schedlab.trace.format import RECORD, Kind
from schedlab.trace.model import Header

def shown(name):
    model = Model(Header(1, 1_000_000, 1_000_000_000, 1), name, "equal")
    forked = [(0, 0, 0, Kind.START, 0, 0, 0), (0, 1, 0, Kind.FORK, 0, 1, 0), (9, 2, 1, Kind.SWITCH, 0, 0, 0)]
    model.feed(np.array(forked, RECORD))
    return model.frame()

def found(name):
    now = shown(name)
    policy = parse_choices(name)[0]
    setting = linux_shares.Setting((policy,), "linux")
    offered = {each["name"]: each for each in read_choices().policies}[name]
    return {
        "compared": policy in compared_policies(full=False),
        "draws": is_random(name),
        "command": setting.command(policy),
        "verdicts": [
            PolicyRow(name, {64: 100, 4096: cost}, {}).verdict for cost in (100, 150)
        ],
        "page": {key: offered[key] for key in ("order", "levels", "remark_kind", "cost")},
        "decision": now["decisions"][0]["text"],
        "levels": now["levels"],
        "shared": now["shared_queue"],
        "in order": sort_policies(["not there", name])[0] == name,
        "a preset looks otherwise": theme.policy_look(name) != theme.policy_look(f"{name} slice=2"),
    }

print(json.dumps([found(name) for name in sys.argv[1:]]))
"""


def test_new_policy_is_treated_like_a_built_in_one(checkout: Path) -> None:
    """All that is shown about the new policy equals what is shown about round-robin."""
    result = command(checkout, "-c", COMPILED_SHAPE, "my-own-2", "rr")
    assert result.returncode == 0, result.stderr
    custom, shipped = json.loads(result.stdout)
    assert custom == shipped
    assert custom["compared"] and custom["in order"] and custom["a preset looks otherwise"]
    assert custom["verdicts"] == ["met", "grows"]
    assert custom["decision"] == "next in turn"


@pytest.mark.spike
def test_a_new_policy_runs_on_the_kernel_at_once(checkout: Path, tmp_path: Path) -> None:
    result = command(
        checkout,
        *("-m", "schedlab", "run", "--json", "--policy", "my-own-2,rr", "--cpus", "1"),
        *("--set", "slice=3", "--workload", "cpu-bound -n 3", "--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    custom, rr = (run["metrics"]["summary"] for run in json.loads(result.stdout)["runs"])
    assert (custom["policy"], rr["policy"]) == ("my-own-2", "rr")
    assert custom["finished"] == rr["finished"] == 3
    # Its separate hook changes times by some ns: a slice that ends near a tick may count once.
    assert abs(custom["context_switches"] - rr["context_switches"]) <= 1
    assert rr["context_switches"] > 50


@pytest.mark.spike
def test_a_cpu_pushes_waiting_processes_away(checkout: Path, tmp_path: Path) -> None:
    """Each idle CPU receives one task per tick, which runs there at once.

    The policy moves tasks in no other way. The program begins just after a tick, so that no tick
    comes between its forks.
    """
    result = command(
        checkout,
        *("-m", "schedlab", "run", "--policy", "pusher", "--cpus", "4", "--tick", "1ms"),
        *("--workload", "sh -c 'sleep 1; cpu-bound -n 4'", "--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    (file,) = (tmp_path / "out").rglob(TRACE_FILE)
    events = trace.read(file).events.with_row_index()
    forks = events.filter(pl.col("kind") == trace.Kind.FORK)
    forks = forks.filter(pl.len().over("process") == 4)
    after_first_fork = pl.col("index") > forks["index"].min()
    moves = events.filter((pl.col("kind") == trace.Kind.MIGRATE) & after_first_fork)
    assert len(forks) == 4 and len(forks["cpu"].unique()) == 1
    assert moves["cpu"].to_list() == moves["first"].to_list()  # by the CPU that gives
    assert len(moves["second"].unique()) == 3
    for row, time, pid, to in moves.select("index", "time_ns", "process", "second").iter_rows():
        runs = (pl.col("index") > row) & (pl.col("kind") == trace.Kind.SWITCH)
        first = events.filter(runs & (pl.col("process") == pid)).row(0, named=True)
        assert first["cpu"] == to and first["time_ns"] - time <= 20_000
    last_fork = forks["time_ns"].to_numpy().max()
    for ticks, time in enumerate(moves["time_ns"].to_list()[:3], start=1):
        assert time - last_fork <= ticks * 1_000_000 + 10_000


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("machine", ["sim", pytest.param("spike", marks=pytest.mark.spike)])
def test_a_turn_ends_on_the_cpu_that_the_policy_names(
    checkout: Path, tmp_path: Path, machine: str, step: int
) -> None:
    """The named CPU may be the task's last one; that CPU then picks twice in a row."""
    work = tmp_path / "work.json"
    work.write_text('{"tasks": {"worker": {"instance": 2, "loop": 1, "run": "12ticks"}}}')
    result = command(
        checkout,
        *("-m", "schedlab", "run", "--policy", "mover", "--set", f"step={step}", "--cpus", "3"),
        *("--machine", machine, "--workload", str(work), "--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    (file,) = (tmp_path / "out").rglob(TRACE_FILE)
    events = trace.read(file)
    trace.validate(events)
    expired = 0
    left: dict[int, tuple[int, bool]] = {}
    for switch in events.events.filter(kind=trace.Kind.SWITCH).iter_rows(named=True):
        cpu, incoming, went = switch["cpu"], switch["process"], switch["first"]
        if incoming in left:
            before, moved = left.pop(incoming)
            if incoming == 1:
                continue  # init is urgent: no policy places it
            assert cpu == (before + step * moved) % 3
            expired += moved
        left[went] = cpu, went > 0 and switch["second"] == trace.ProcessState.RUNNABLE
        left.pop(0, None)
    assert expired >= 24


SURVEYED = {
    "format": 1, "cpus": 4, "cores": ["0,2", "1,3"], "caches": ["0,2", "1,3"], "nodes": ["0,2", "1,3"],
    "distances": [[10, 21], [31, 10]],
    "kinds": [{"cpus": "0,2", "capacity": 1024, "levels": [512, 1024]}, {"cpus": "1,3", "capacity": 700}],
}  # fmt: skip


@pytest.mark.parametrize("machine", ["sim", pytest.param("spike", marks=pytest.mark.spike)])
def test_a_policy_reads_the_machines_shape(checkout: Path, tmp_path: Path, machine: str) -> None:
    """Each CPU reads the complete shape; without a shape, all CPUs are alike."""
    shape = tmp_path / "shape.json"
    shape.write_text(json.dumps(SURVEYED))
    work = tmp_path / "work.json"
    work.write_text('{"tasks": {"worker": {"instance": 12, "loop": 1, "run": "12ticks"}}}')
    for given in (("--shape", str(shape)), ()):
        out = tmp_path / f"out{len(given)}"
        result = command(
            checkout,
            *("-m", "schedlab", "run", "--policy", "surveyor", "--cpus", "4", "--machine", machine),
            *("--workload", str(work), *given, "--out", str(out)),
        )
        assert result.returncode == 0, result.stderr
        assert ("all CPUs are equally fast here" in result.stderr) == (
            machine != "sim" and given != ()
        )
        (file,) = out.rglob(TRACE_FILE)
        assert shape_in_log(file) == (expected_of_shape() if given else expected_of_none())


def shape_in_log(file: Path) -> set[tuple[int, str, int, int]]:
    """Returns the annotations of the surveying policy: CPU, words and numbers."""
    recording = trace.read(file)
    texts = dict(
        zip(recording.texts["row"].to_list(), recording.texts["text"].to_list(), strict=True)
    )
    rows = recording.rows(trace.Kind.SAID).tolist()
    columns = recording.events[rows].select("cpu", "second", "first").iter_rows()
    return {
        (cpu, texts[row], second, first)
        for row, (cpu, second, first) in zip(rows, columns, strict=True)
    }


def expected_of_shape() -> set[tuple[int, str, int, int]]:
    annotations = set()
    for cpu in range(4):
        node, capacity, levels = cpu % 2, (1024, 700)[cpu % 2], (2, 1)[cpu % 2]
        numbers = levels << 48 | node << 32 | capacity << 16 | capacity
        annotations.add((cpu, "CPU: {}, sibling {}", numbers, (cpu + 2) % 4))
        for other in range(4):
            shared = 3 if other % 2 == node else 0
            distance = (10, 21, 31)[0 if other % 2 == node else 1 + node]
            annotations.add((cpu, "beside it: {}, distance {}", other << 2 | shared, distance))
    return annotations


def expected_of_none() -> set[tuple[int, str, int, int]]:
    annotations = {
        (cpu, "CPU: {}, sibling {}", 1 << 48 | 1024 << 16 | 1024, cpu) for cpu in range(4)
    }
    return annotations | {
        (cpu, "beside it: {}, distance {}", other << 2 | (3 if other == cpu else 1), 10)
        for cpu in range(4)
        for other in range(4)
    }


def test_the_build_forgets_a_policy_that_was_removed(checkout: Path, tmp_path: Path) -> None:
    path = copy_checkout(tmp_path / "checkout")
    for name in ("gone", "kept"):
        create_policy(path, name, "nobody")
    for name in ("gone", "kept"):
        result = command(path, "-m", "schedlab", "policies", name)
        assert result.returncode == 0, result.stderr
    (path / "policies" / "gone.c").unlink()
    result = command(path, "-m", "schedlab", "policies", "--json")
    names = [policy["name"] for policy in json.loads(result.stdout)["policies"]]
    assert "kept" in names and "gone" not in names


def empty_checkout(path: Path) -> Path:
    """Checkout with only the files that new-policy reads."""
    (path / "policies" / "support").mkdir(parents=True)
    (path / "tests" / "host").mkdir(parents=True)
    for folder in ("policies", "policies/support", "tests/host"):
        for header in (ROOT / folder).glob("*.h"):
            shutil.copy(header, path / folder)
    (path / "policies" / "rr.c").touch()
    (path / "policies" / "my_own.c").touch()
    (path / "tests" / "host" / "policy_registry_test.c").touch()
    return path


def files(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("", "Fair", "fair_share", "fair\n", "../fair", "fair.c", "équitable"), "a-z, 0-9 and -"),
        (("2fair", "-fair"), "letter"),
        (("f" * (NAME_MAX + 1),), f"at most {NAME_MAX}"),
        (("rr",), "policies/rr.c"),
        (("my-own",), "policies/my_own.c"),
        (("registry",), "tests/host/policy_registry_test.c"),
        (("model",), "tests/host/fair_policies.h"),
        (("find",), "policies/registry.h"),
        (("run",), "policies/policy.h"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, names: tuple[str, ...], complaint: str) -> None:
    path = empty_checkout(tmp_path)
    before = files(path)
    for name in names:
        with pytest.raises(WrongUsage) as refused:
            create_policy(path, name, "nobody")
        assert complaint in str(refused.value)
    assert files(path) == before


@pytest.mark.parametrize("source", ["", "  ", "two\nlines", "bell \a", "x" * (SOURCE_TEXT_MAX + 1)])
def test_sources_that_are_refused(tmp_path: Path, source: str) -> None:
    path = empty_checkout(tmp_path)
    before = files(path)
    with pytest.raises(WrongUsage, match="--source"):
        create_policy(path, "fair", source)
    assert files(path) == before
