# SPDX-License-Identifier: MIT
"""Runs schedlab's policies on the Linux kernel of this machine, for the duration of a run.

A run uses the same script as guests (linux/guest/run.sh), which starts the policy server, runs the
workload and ends the server. The script dies with this process, and the server with the script. So
the kernel's own class takes over no matter how a run ends.
"""

import gzip
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from schedlab.base.host.isolated import complete_prefix
from schedlab.base.host.processor import need_linux_guests
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import BINARY_WORKLOAD_FILE
from schedlab.machines.linux.installed_schedulers import find_scheduler_program
from schedlab.machines.linux.kernel import NEEDED_OPTIONS, find_config
from schedlab.machines.linux.machine import WORKLOAD_NAME, Linux
from schedlab.machines.outcome import Outcome
from schedlab.machines.published import is_published
from schedlab.machines.spec import BuiltParts, Release, RunSpec

_COARSE_CLOCK_ID = 6
"""Linux's CLOCK_MONOTONIC_COARSE, whose resolution is the tick."""
_RESTORE_SECONDS = 10.0
RESULT_FOLDER = "result"


class HostLinux(Linux):
    """The Linux kernel of this machine; see Machine.

    The policy schedules all processes of this machine, not only those of the workload.
    """

    name = "host"
    needs: tuple[str, ...] = ()
    repeatable = False
    parts = ("linux_programs",)
    begin_s = 0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self.cpus_max = os.cpu_count() or 1
        self.tick_ns = round(time.clock_getres(_COARSE_CLOCK_ID) * 1e9)
        self.memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20

    @property
    def note(self) -> str:
        return f"this machine's own kernel, Linux {platform.release()}: not repeatable"

    def check(self, run: RunSpec) -> None:
        for name, given, maximum in (
            ("cpus", run.cpus, self.cpus_max),
            ("memory_mib", run.memory_mib, self.memory_mib),
        ):
            if given != maximum:
                raise WrongUsage(
                    f"{format_parameter('machine', self.name)} always uses all "
                    f"{maximum} of this machine",
                    what=format_parameter(name, given),
                    fix="leave it out",
                )
        if run.shape:
            raise WrongUsage(
                f"{format_parameter('machine', self.name)} has a fixed shape, which policies read from it",
                what="`shape=`",
                fix="leave it out",
            )
        super().check(run)
        require_fit_host(self._root)

    def commands(self) -> frozenset[str] | None:
        return None  # any program on the PATH

    def release(self) -> Release:
        return Release("/proc/version", platform.release(), "this machine's own kernel")

    def prepare_command(
        self, run: RunSpec, parts: BuiltParts, folder: Path, scratch: Path
    ) -> list[str]:
        (scratch / RESULT_FOLDER).mkdir()
        if run.file:
            (scratch / WORKLOAD_NAME).write_bytes((folder / BINARY_WORKLOAD_FILE).read_bytes())
        settings: dict[str, object] = {
            "RESULT": scratch / RESULT_FOLDER,
            "WORKLOAD_TICK_US": run.tick_ns // 1000,
        }
        if is_published(run.policy):
            settings["SCHEDULER"] = find_scheduler_program(run.policy)
        words = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in settings.items())
        unpack = (
            f"cd {shlex.quote(str(scratch))} && tar -xf {shlex.quote(str(parts[self.parts[0]]))}"
        )
        begin = f"{unpack} && export {words}"
        return [
            *complete_prefix("TERM"),
            "sh",
            "-c",
            f"{begin} && exec sh run.sh {self.arguments(run)}",
        ]

    def outcome(self, status: int, folder: Path, scratch: Path, console: Path) -> Outcome:
        result = self.collect(status, "", scratch / RESULT_FOLDER, folder, console)
        remaining = self._find_remaining_scheduler()
        if remaining:
            message = (
                f"the scheduler {remaining} is still active; end it with `schedlab-linux stop`"
            )
            return Outcome("failed", f"{message}\n{result.message}".strip())
        return result

    def _find_remaining_scheduler(self) -> str:
        """Returns the name of a scheduler that is still loaded, or "" once the kernel's own class
        is active.

        Waits, because the kernel's own class takes over shortly after the server's end.
        """
        deadline_s = time.monotonic() + _RESTORE_SECONDS
        while (name := find_loaded_scheduler(self._root)) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        return name

    def host_cpus(self, cpus: int) -> int:
        """Returns a number above any CPU count, so that runs do not overlap."""
        return sys.maxsize

    def host_limit(self, cpus: int, limit_ns: int) -> float:
        return 300 + limit_ns / 1e9


_STATE_FILE = "sys/kernel/sched_ext/state"
_SCHED_EXT, _BTF = "CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"
_KERNEL_FIX = (
    "boot Linux 6.15 or newer with these options, such as the kernel of Debian's trixie-backports; or"
    " use a guest: `machine='linux'`"
)


def require_fit_host(root: Path = Path("/")) -> None:
    """Raises WrongUsage or MachineUnfit, with what to do, unless this machine can load policies.

    `root`: the root folder; tests pass another one.
    """
    need_linux_guests()
    problems = list(_missing_features(root))
    if problems:
        raise WrongUsage("; ".join(problems), what="`machine='host'`")


def _missing_features(root: Path) -> Iterator[str]:
    """Yields what the running kernel lacks, in words."""
    options = [name for name, is_present in _check_features(root) if not is_present]
    if options:
        missing_options = " and ".join(f"{name} ({NEEDED_OPTIONS[name]})" for name in options)
        yield f"Linux {platform.release()} {_missing_verb(root, options)} {missing_options}: {_KERNEL_FIX}"
    if not options and not (root / "dev/fuse").exists():
        yield "/dev/fuse is missing: run `modprobe fuse`"
    if os.geteuid() != 0:
        yield "only root may load a scheduler: begin the command with sudo"
    if other := find_loaded_scheduler(root):
        yield (
            f"the scheduler {other} is loaded already: end the program that loaded it, for"
            " example with `schedlab-linux stop` or `systemctl stop scx`"
        )


def _check_features(root: Path) -> Iterator[tuple[str, bool]]:
    yield _SCHED_EXT, (root / _STATE_FILE).exists()
    yield _BTF, (root / "sys/kernel/btf/vmlinux").exists()


def _missing_verb(root: Path, options: list[str]) -> str:
    """Returns the verb of a message. Without a kernel configuration, it is unknown what is missing."""
    text = _read_kernel_config(root)
    is_disabled = text and not any(f"{name}=y" in text for name in options)
    return "was built without" if is_disabled else "does not show"


def _read_kernel_config(root: Path) -> str:
    """Returns the running kernel's configuration, or "" if it is not found."""
    with suppress(OSError, EOFError):
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    return find_config(root / "boot" / "vmlinuz", platform.release())


def find_loaded_scheduler(root: Path = Path("/")) -> str:
    """Returns the name of the loaded sched_ext scheduler, or ""."""
    try:
        if (root / _STATE_FILE).read_text().strip() == "disabled":
            return ""
        return (root / "sys/kernel/sched_ext/root/ops").read_text().strip() or "without a name"
    except FileNotFoundError:
        return ""
