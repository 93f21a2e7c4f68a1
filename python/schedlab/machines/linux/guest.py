# SPDX-License-Identifier: MIT
"""Boots a Linux guest, runs one script in it, and returns the script's results.

While the script runs, the guest uses only a console (an 8250, which QEMU serves synchronously). The
results come over a virtio-serial port afterwards. QEMU's two threads take turns. So a repeatable
guest gets the same events at the same instructions in each run.
"""

import shutil
import signal
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from schedlab.base.display.activity import begin_display
from schedlab.base.display.terminal import say
from schedlab.base.host.isolated import complete_prefix, prefix_before_pid
from schedlab.base.host.processor import need_linux_guests
from schedlab.base.host.supervision import supervise
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.needs import LINUX_GUEST_PROGRAMS, need
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.machines.linux import image, kvm
from schedlab.machines.linux.kernel import Kernel, read_user_kernel
from schedlab.machines.linux.kvm_fallback import FallbackChoice
from schedlab.machines.linux.packages import packages
from schedlab.machines.linux.topology import topology_options
from schedlab.machines.outcome import LIMIT, PANIC, describe_tail, indent, read_console
from schedlab.machines.qemu import find_emulator
from schedlab.machines.spec import Release
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.workload.shapes.model import Shape

QEMU_PROGRAM = "qemu-system-x86_64"
RESULTS_FOLDER = "results"
"""Subfolder of the boot's folder that receives /result."""
CPUS_MAX = 64

REPEATABLE, FREE_RUNNING, KVM = "repeatable", "free-running", "KVM"


NANOSECONDS_SHIFT = 2
"""An instruction of a repeatable guest takes 2 to this power nanoseconds of guest time."""

_RAMDISK = "ramdisk.cpio"
_BOOT_SECONDS_MAX = 120
"""Host seconds for the boot, in addition to the script's limit."""
_HOST_SECONDS_PER_GUEST_SECOND_MAX = 20
"""Host seconds that one guest second may take on a busy host."""
SILENT_SECONDS = 30.0
"""Host seconds after which a guest that has not reached its init is restarted without KVM."""
_ALIVE_FILE, _WITHOUT_KVM_FILE = "alive", "without-kvm"
_SIGN_PORT = 9
"""Must be the same as in linux/guest/init."""
_TAKING_TURNS_LIBRARY = BUILD_FOLDER / "linux" / "taking_turns.so"
"""Linked into the boot's folder, because LD_PRELOAD paths cannot contain blanks."""


@dataclass(frozen=True)
class GuestJob:
    """The task of a guest, and its parameters."""

    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Files by their names in /job; all are executable."""
    script: str = ""
    """A shell script that root runs in /job, with /job on the PATH. It writes results to /result."""
    cpus: int = 1
    memory_mib: int = 1024
    shape: Shape | None = None
    """Must have `cpus` CPUs; None means QEMU's default."""
    repeatable: bool = True
    seed: int = 1
    """Seed of the kernel's random numbers; $schedlab_seed in the script."""
    limit_s: float = 60
    """Guest seconds for the script."""
    kernel: Path | None = None
    """None means the packages' kernel."""
    programs: Sequence[str] = image.BENCHMARKS
    """Benchmarks that the script uses."""
    kvm: bool = True
    """True to use KVM for a free-running guest if the host supports it."""


@dataclass(frozen=True)
class Wiring:
    """The console and ports of a guest, and the kernel arguments that match."""

    options: tuple[str, ...]
    """QEMU options for the console and the ports."""
    words: tuple[str, ...] = ()
    """Kernel arguments for the guest's init."""
    kvm_words: tuple[str, ...] = ()
    """Additional kernel arguments under KVM."""


def port_options(name: str, number: int, end: str) -> tuple[str, ...]:
    """Returns QEMU options for /dev/vport0pNUMBER; `end` is the host's side of the port."""
    kind, _, rest = end.partition(",")
    device = f"virtserialport,chardev={name},name={name},nr={number}"
    return ("-chardev", f"{kind},id={name},{rest}", "-device", device)


PORT_BUS_OPTIONS = ("-device", "virtio-serial-pci,ioeventfd=off")
"""The bus of the ports; without ioeventfd, it answers synchronously."""
_RESULTS_ARCHIVE = "results.tar"
_RESULTS_PORT = (*PORT_BUS_OPTIONS, *port_options("results", 1, f"file,path={_RESULTS_ARCHIVE}"))
JOB_WIRING = Wiring(("-serial", "stdio", *_RESULTS_PORT))
"""Runs the job's script and returns its results."""
SHELL_WIRING = Wiring(("-serial", "mon:stdio", *_RESULTS_PORT), ("schedlab_shell=1",))
"""A shell on this terminal."""


@dataclass(frozen=True)
class GuestOutcome:
    """The outcome of a job."""

    status: int
    """The script's exit status; 101 after a panic, 102 after the time limit.

    Negative for a signal that ended the machine.
    """
    results: Path
    """The contents of /result; empty if the guest did not deliver them."""
    console: str
    mode: str
    """repeatable, free-running or KVM."""
    message: str = ""
    """Why the script did not finish; empty if it finished with any status."""

    @property
    def finished(self) -> bool:
        """True if the script finished with any status."""
        return not self.message


@dataclass(frozen=True)
class PreparedGuest:
    """The command that starts a guest, and how long it may take."""

    command: list[str]
    mode: str
    host_limit_s: float
    """Host seconds after which the guest is considered hung."""


def boot(job: GuestJob, folder: Path) -> GuestOutcome:
    """Runs a job; stores the console and the results in `folder`.

    Can be called from several threads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    console = folder / CONSOLE_FILE
    try:
        prepared = prepare(job, folder)
        status = supervise(prepared.command, folder, console, prepared.host_limit_s)
        return read_outcome(prepared, folder, status)
    finally:
        remove_temporary_files(folder)


def remove_temporary_files(folder: Path) -> None:
    """Deletes the machine's temporary files."""
    for name in (
        _RAMDISK,
        _RESULTS_ARCHIVE,
        _ALIVE_FILE,
        _WITHOUT_KVM_FILE,
        _TAKING_TURNS_LIBRARY.name,
    ):
        (folder / name).unlink(missing_ok=True)


def prepare(job: GuestJob, folder: Path, wiring: Wiring = JOB_WIRING) -> PreparedGuest:
    """Writes the job's ramdisk to `folder` and returns the command that starts the machine there."""
    check_job(job)
    find_qemu()
    guest_packages = packages()
    kernel = read_user_kernel(job.kernel) if job.kernel else guest_packages.kernel
    base = image.base_image(guest_packages, job.programs)
    return assemble(job, folder, kernel.bootable, base, wiring)


def assemble(
    job: GuestJob, folder: Path, kernel: Path, base: Path, wiring: Wiring = JOB_WIRING
) -> PreparedGuest:
    """Does the same as `prepare`, for a kernel that is known to be suitable and a base archive."""
    release = find_qemu()
    entries = image.job_entries(job.files, job.script)
    image.write_ramdisk(base, entries, folder / _RAMDISK)
    seconds = _BOOT_SECONDS_MAX + _HOST_SECONDS_PER_GUEST_SECOND_MAX * job.limit_s

    def command(mode: str) -> list[str]:
        start = [release.path, *machine_options(mode, job), *device_options(mode, wiring)]
        start += ["-kernel", str(kernel), "-initrd", _RAMDISK]
        return [*start, "-append", kernel_arguments(job, mode, wiring)]

    mode = choose_mode(job)
    if mode != KVM:
        prefix = preload_prefix(folder) if mode == REPEATABLE else []
        return PreparedGuest([*complete_prefix(), *prefix, *command(mode)], mode, seconds)
    commands = (command(KVM), command(FREE_RUNNING))
    choice = FallbackChoice(
        *commands, _ALIVE_FILE, SILENT_SECONDS, _WITHOUT_KVM_FILE, list(prefix_before_pid())
    )
    return PreparedGuest([*complete_prefix(), *choice.command()], mode, seconds + SILENT_SECONDS)


def check_job(job: GuestJob) -> None:
    """Raises WrongUsage if no guest can have these parameters."""
    if not 1 <= job.cpus <= CPUS_MAX:
        raise WrongUsage(
            f"{format_parameter('cpus', job.cpus)}: out of range for a Linux guest; choose 1 to {CPUS_MAX}"
        )
    unknown = set(job.programs) - set(image.BENCHMARKS)
    if unknown:
        benchmark_names = ", ".join(image.BENCHMARKS)
        raise WrongUsage(
            f"{', '.join(sorted(unknown))}: not a benchmark of guests; choose from {benchmark_names}"
        )
    if job.memory_mib < 256:
        raise WrongUsage(
            f"{format_parameter('memory_mib', job.memory_mib)}: too small for a Linux guest; choose 256 or more"
        )
    if job.limit_s <= 0:
        raise WrongUsage(f"{job.limit_s} s: not a limit of a guest; choose more than 0 s")


def choose_mode(job: GuestJob) -> str:
    if job.repeatable:
        return REPEATABLE
    return KVM if job.kvm and not kvm_problem() else FREE_RUNNING


def actual_mode(folder: Path, mode: str) -> str:
    """Returns the actual mode of a guest, from the files in `folder`.

    If a guest in `mode` was restarted without KVM, prints the reason, and disables KVM for this
    process.
    """
    if mode == REPEATABLE:
        return mode
    fallback_file = folder / _WITHOUT_KVM_FILE
    if not fallback_file.is_file():
        return KVM if (folder / _ALIVE_FILE).exists() else FREE_RUNNING
    why = fallback_file.read_text().strip()
    say(why)
    kvm.give_up(why.partition(";")[0])
    return FREE_RUNNING


def machine_options(mode: str, job: GuestJob) -> list[str]:
    """Returns QEMU options for CPUs, memory and time.

    All CPUs share one thread: with a thread per CPU, QEMU 7.2's guests sometimes crash at the
    start.
    """
    accelerators = {
        REPEATABLE: [
            *("-accel", "tcg,thread=single", "-icount", f"shift={NANOSECONDS_SHIFT},sleep=off"),
            *("-cpu", "max,-rdrand,-rdseed", "-rtc", "base=2026-01-01,clock=vm"),
            *("-seed", str(job.seed % (1 << 32))),
        ],
        FREE_RUNNING: ["-accel", "tcg,thread=single", "-cpu", "max"],
        KVM: ["-accel", "kvm", "-cpu", "host"],
    }
    size = topology_options(job.shape, job.cpus, job.memory_mib)
    return [*BOARD_OPTIONS, *size, *accelerators[mode]]


BOARD_OPTIONS = (
    *("-machine", "pc,vmport=off,smm=off,i8042=off"),
    *("-nodefaults", "-no-user-config", "-no-reboot"),
)
"""A minimal PC. Smaller boards (microvm) have no clock to calibrate other clocks with."""


def device_options(mode: str, wiring: Wiring) -> list[str]:
    sign = port_options("alive", _SIGN_PORT, f"file,path={_ALIVE_FILE}") if mode == KVM else ()
    return ["-display", "none", *wiring.options, *sign]


def kernel_arguments(job: GuestJob, mode: str, wiring: Wiring = JOB_WIRING) -> str:
    """Returns the kernel's arguments, which include the arguments of the guest's init."""
    words = ["console=ttyS0", "loglevel=4", "panic=-1", "oops=panic"]
    # Restart by one port write, which ends QEMU; the default method, the keyboard, takes seconds.
    words.append("reboot=p")
    # Self-tests would take 10 s of CPU time, and there is no second clock to verify the TSC with.
    words += ["cryptomgr.notests", "tsc=reliable"]
    if mode != REPEATABLE:
        # The kernel briefly tests its timer; if the host delays QEMU during the test, the kernel
        # panics.
        words.append("no_timer_check")
    else:
        # QEMU before 8.1 may leave a CPU without a turn for this long, which must not unload a
        # policy.
        words.append("rcupdate.rcu_cpu_stall_timeout=300")
        # QEMU marks pages as accessed when it resizes its tables, at times that depend on the host.
        # So the guest must not use these marks.
        words += ["damon_stat.enabled=N", "transparent_hugepage=never"]
    words += [f"schedlab_seed={job.seed}", f"schedlab_limit={job.limit_s:g}", *wiring.words]
    words += wiring.kvm_words if mode == KVM else ()
    return " ".join(words)


def interact(job: GuestJob, folder: Path) -> int:
    """Runs a guest with a shell on this terminal instead of the script; returns QEMU's exit status.

    Ctrl-A X switches it off; Ctrl-C goes to the guest.
    """
    prepared = prepare(job, folder, SHELL_WIRING)
    begin_display()
    with subprocess.Popen(prepared.command, cwd=folder) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


# --- outcomes


def read_outcome(prepared: PreparedGuest, folder: Path, exit_status: int | None) -> GuestOutcome:
    """Returns the outcome from the machine's files; `exit_status` is None if the machine was killed."""
    console = read_console(folder / CONSOLE_FILE)
    path = folder / RESULTS_FOLDER
    reported_status = unpack_results(folder / _RESULTS_ARCHIVE, path)
    status, message = describe_end(reported_status, exit_status, prepared.host_limit_s, console)
    mode = actual_mode(folder, prepared.mode)
    return GuestOutcome(status, path, console, mode, message)


def describe_end(
    reported_status: str, exit_status: int | None, seconds: float, console: str
) -> tuple[int, str]:
    """Returns a job's status, and why it did not finish.

    `reported_status`: what the guest's init reported about the end.
    """
    if reported_status == "limit":
        return LIMIT, "the script reached its time limit and was ended" + describe_tail(console)
    if reported_status.isdigit():
        return int(reported_status), ""
    if "Kernel panic" in console:
        return PANIC, "the guest's kernel panicked:\n" + indent(panic_lines(console))
    if exit_status is None:
        message = f"the guest did not end within {seconds:.0f} s of the host and was ended"
        return LIMIT, message + describe_tail(console)
    if exit_status < 0:
        name = signal.Signals(-exit_status).name
        return exit_status, f"the guest's QEMU was ended by {name}" + describe_tail(console)
    message = f"the guest ended without handing over its results (QEMU's status: {exit_status})"
    return exit_status or 1, message + describe_tail(console)


def panic_lines(console: str) -> list[str]:
    """Returns the lines of a panic with the five lines before it, which often name the reason."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if "Kernel panic" in line or "BUG:" in line or "Oops:" in line:
            return lines[max(0, number - 5) : number + 40]
    return lines[-40:]


def unpack_results(packed: Path, path: Path) -> str:
    """Unpacks /result from the guest's archive, which may be incomplete.

    Returns the status stored in the archive; "" if it is missing.
    """
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    if not packed.exists():
        return ""
    reported_status = ""
    with suppress(tarfile.ReadError, EOFError), tarfile.open(packed, "r|") as tar:
        for member in tar:
            if member.name == "status":
                stream = tar.extractfile(member)
                reported_status = stream.read().decode().strip() if stream else ""
            else:
                unpack_member(tar, member, path)
    return reported_status


def unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Unpacks a file or a folder within `path`, and nothing else, because guests are not trusted."""
    top, *parts = Path(member.name).parts or ("",)
    if top != "result" or not parts or ".." in parts:
        return
    target = path.joinpath(*parts)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.isreg():
        stream = tar.extractfile(member)
        assert stream
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            shutil.copyfileobj(stream, out)


# --- the host


@cache
def find_qemu() -> Release:
    """Returns the QEMU on the PATH. Raises MachineUnfit if it is not suitable."""
    need_linux_guests()
    need(*LINUX_GUEST_PROGRAMS)
    return find_emulator(QEMU_PROGRAM)


def kvm_problem() -> str:
    """Returns why guests cannot use KVM; "" if they can. Tests it once per process."""
    if kvm.is_switched_off():
        return f"it is switched off, as by {kvm.NO_KVM_VARIABLE}=1"
    return kvm.reason_given_up() or _find_kvm_problem()


@cache
def _find_kvm_problem() -> str:
    return kvm.find_problem([*complete_prefix(), find_qemu().path, *BOARD_OPTIONS])


__all__ = [
    "GuestJob",
    "GuestOutcome",
    "Kernel",
    "boot",
    "find_qemu",
    "interact",
]


def preload_prefix(folder: Path) -> list[str]:
    """Returns a prefix of QEMU's command that makes its two threads take turns.

    See linux/qemu/taking_turns.c. QEMU must run in `folder`.
    """
    build(str(_TAKING_TURNS_LIBRARY.relative_to(ROOT)))
    link = folder / _TAKING_TURNS_LIBRARY.name
    link.unlink(missing_ok=True)
    link.symlink_to(_TAKING_TURNS_LIBRARY)
    return ["env", f"LD_PRELOAD=./{_TAKING_TURNS_LIBRARY.name}"]
