# SPDX-License-Identifier: MIT
"""Tools for language models, and their server (Model Context Protocol) on standard input and output.

The policies are untrusted, so they are compiled and run like submissions (docs/grading.md). Files
are written to one folder only.
"""

import functools
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from schedlab import __version__
from schedlab.analysis.explanation.explained_waits import WaitQuery
from schedlab.analysis.explanation.explained_waits import explain as explain_waits
from schedlab.analysis.tables import open_run
from schedlab.base.files import replacement
from schedlab.base.files.atomic import atomic_write
from schedlab.base.toolchain.needs import need_extra
from schedlab.base.toolchain.policies import known_policies, read_catalogue
from schedlab.courses.grading.graded_run import GradedRun, store_run
from schedlab.courses.scoring import candidate
from schedlab.courses.submissions import wasm_policy
from schedlab.courses.submissions.compiling import SOURCE_BYTES_MAX, CompiledPolicy
from schedlab.courses.submissions.sandbox import need_sandbox
from schedlab.courses.submissions.trial import CPUS_MAX, PROCESSES_MAX, Trial
from schedlab.errors import RuleBroken, SchedlabError, WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.paths import ROOT
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile
from schedlab.workload.palette import PaletteEntry, read_palette

_POLICIES = ROOT / "policies"
_INTERFACE_FILES = (ROOT / "docs" / "writing-a-policy.md", _POLICIES / "policy.h")
_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,23}")
_RUNS_FOLDER = "runs"
_TICK_NS, _LIMIT_NS = 1_000_000, 60_000_000_000
_WORST_WAITS_MAX = 20


@dataclass(frozen=True)
class Laboratory:
    """The tools. All raise SchedlabError with a reason.

    `folder` receives policies and runs. `trusted` compiles policies outside of the sandbox.
    """

    folder: Path
    trusted: bool = False

    def read_interface(self) -> str:
        """How to write a policy: a guide with an example, and policies/policy.h, which declares all hooks."""
        return "\n\n".join(file.read_text() for file in _INTERFACE_FILES)

    def list_policies(self) -> dict[str, str]:
        """All available policies by name, with descriptions; your own come first."""
        student_policies = {file.stem: "your own" for file in sorted(self.folder.glob("*.c"))}
        return student_policies | {
            name: policy.meaning
            for name, policy in read_catalogue().items()
            if name not in student_policies
        }

    def read_policy(self, name: str) -> str:
        """The C source of a policy: your own or a built-in one."""
        return self._policy_source(name).read_text(errors="replace")

    def write_policy(self, name: str, source: str) -> str:
        """Write your own policy NAME.c, or replace it. This neither compiles nor runs it."""
        path = self._user_policy(name)
        if name in read_catalogue():
            raise WrongUsage(f"{name}: is a built-in policy; choose another name")
        content = source.encode(errors="replace")
        if len(content) > SOURCE_BYTES_MAX:
            raise WrongUsage(f"source: larger than {SOURCE_BYTES_MAX:,} bytes; shorten it")
        replacement.check_file("policy", path, has_default_name=True)
        with atomic_write(path) as new_file:
            new_file.write_bytes(content)
        replacement.add_to_list(path)
        return f"{path} is written"

    def check_policy(self, name: str) -> str:
        """Compile a policy, and test each hook in short runs.

        Returns the broken rule and its location, or that no rule is broken.
        """
        policy = self._compile(name)
        try:
            candidate.check_required_tests(policy)
        except candidate.CandidateFailure as failure:
            return f"{name} fails: {failure.why}"
        return f"{name} compiles, and breaks no rule"

    def list_workloads(self) -> dict[str, str]:
        """All available workloads by name, with descriptions."""
        return {
            name: workload_files.read_description(entry.file) or entry.title
            for name, entry in _finite_workloads().items()
        }

    def run_policy(self, name: str, workload: str, cpus: int = 1, seed: int = 1) -> dict[str, Any]:
        """Run a workload under a policy in the simulator, with the kernel's costs.

        Returns the metrics of the run and of each group of processes (times in nanoseconds), and
        the run's name for explain_waits.
        """
        if not 1 <= cpus <= CPUS_MAX:
            raise WrongUsage(f"cpus: out of range; choose 1 to {CPUS_MAX}")
        if not 0 <= seed < 2**63:
            raise WrongUsage("seed: out of range; choose 0 to 2^63 - 1")
        file = self._find_workload(workload)
        trial = Trial(workload, file, cpus, seed, _TICK_NS, _LIMIT_NS, "kernel", {})
        run_name = f"{name}-{workload}-{cpus}cpu-seed{seed}"
        run_folder = self.folder / _RUNS_FOLDER / run_name
        replacement.check_folder("run", run_folder)
        policy = self._compile(name)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
            path = Path(scratch) / TRACE_FILE
            try:
                wasm_policy.run(trial, policy, path)
            except wasm_policy.PolicyBroken as error:
                raise RuleBroken(f"{name} under {workload}: {error}") from None
            graded_run = GradedRun(path)
            run_folder.parent.mkdir(exist_ok=True)
            store_run(trial, policy.name, graded_run, run_folder, name, file.sha256)
        return {
            "run": run_name,
            "folder": str(run_folder),
            "summary": graded_run.metrics.summary.to_dicts()[0],
            "groups": graded_run.metrics.groups.to_dicts(),
        }

    def explain_waits(self, run: str, worst: int = 3) -> dict[str, Any]:
        """Why processes of a run waited: which processes delayed which, and a breakdown of the
        longest waits with the policy's reasons. Times are nanoseconds.
        """
        if not 0 <= worst <= _WORST_WAITS_MAX:
            raise WrongUsage(f"worst: out of range; choose 0 to {_WORST_WAITS_MAX}")
        folders = sorted(
            run_folder.name
            for run_folder in (self.folder / _RUNS_FOLDER).glob("*")
            if run_folder.is_dir()
        )
        if run not in folders:
            advice = f"choose from: {', '.join(folders)}" if folders else "use run_policy first"
            raise WrongUsage(f"run {run}: does not exist; {advice}")
        opened = open_run(self.folder / _RUNS_FOLDER / run)
        return explain_waits(opened.trace, WaitQuery(worst=worst), known_policies()).to_dict()

    def score_policy(self, name: str) -> dict[str, Any]:
        """Score a policy at the quick level of the score card (docs/score.md): its improvement
        factor over round-robin for each objective, or the reason why it has no score.
        """
        return candidate.score(self._policy_source(name), trusted=self.trusted)

    def _user_policy(self, name: str) -> Path:
        """Returns the path of the client's own policy. Raises WrongUsage for an invalid name."""
        if not _NAME_PATTERN.fullmatch(name):
            raise WrongUsage(
                f"{name[:40]!r}: not a valid name; use at most 24 of a-z, 0-9, - and _, "
                "beginning with a letter"
            )
        return self.folder / f"{name}.c"

    def _policy_source(self, name: str) -> Path:
        """Returns the path of a policy's source: the client's own or a built-in one."""
        for file in (self._user_policy(name), _POLICIES / f"{name}.c"):
            if file.is_file() and not file.is_symlink():
                return file
        raise WrongUsage(f"policy {name}: does not exist; choose a name from list_policies")

    def _compile(self, name: str) -> CompiledPolicy:
        """Compiles a policy. Raises SchedlabError with the compiler's errors."""
        if not self.trusted:
            need_sandbox()
        wasm_policy.need_library()
        try:
            return candidate.compile_candidate(self.read_policy(name), self.trusted)
        except candidate.CandidateFailure as failure:
            raise RuleBroken(f"{name} does not compile: {failure.why}") from None

    def _find_workload(self, name: str) -> WorkloadFile:
        entry = _finite_workloads().get(name)
        if entry is None:
            raise WrongUsage(f"workload {name}: does not exist; list_workloads lists all")
        file = workload_files.read_workload_file(entry.file)
        if file.total() + 3 > PROCESSES_MAX:
            raise WrongUsage(
                f"workload {name}: has more than {PROCESSES_MAX - 3} processes; choose another"
            )
        return file


def _finite_workloads() -> dict[str, PaletteEntry]:
    """Returns the workloads that end by themselves."""
    return {name: entry for name, entry in read_palette().items() if entry.kind == "study"}


_SERVER_DESCRIPTION = (
    "A laboratory for CPU schedulers. Read the interface and a policy, write one of your own, check it, run it, see"
    " why processes waited, and score it. The same source has the same score each time."
)

_TOOL_LOCK = Lock()
"""Serialises tools, because a folder's list of files is rewritten for each file."""


def serve(laboratory: Laboratory, more_tools: Sequence[Callable[..., str]] = ()) -> None:
    """Serves one client until it disconnects. `more_tools`: tools next to the laboratory's."""
    need_extra("courses")
    from mcp.server import MCPServer

    server: Any = MCPServer(
        "schedlab", instructions=_SERVER_DESCRIPTION, version=__version__, log_level="WARNING"
    )
    tools: tuple[Callable[..., Any], ...] = (
        laboratory.read_interface,
        laboratory.list_policies,
        laboratory.read_policy,
        laboratory.write_policy,
        laboratory.check_policy,
        laboratory.list_workloads,
        laboratory.run_policy,
        laboratory.explain_waits,
        laboratory.score_policy,
        *more_tools,
    )
    for tool in tools:
        server.add_tool(_with_tool_errors(tool), structured_output=False)
    server.run("stdio")


def _with_tool_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a tool so that the client sees the reasons of SchedlabError, but no details of other errors."""

    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call_tool(*args: Any, **kwargs: Any) -> Any:
        try:
            with _TOOL_LOCK:
                return tool(*args, **kwargs)
        except SchedlabError as error:
            raise ToolError(str(error)) from None

    return call_tool
