# SPDX-License-Identifier: MIT
"""Boots a Linux guest, runs one script in it, and returns the script's results.

While the script runs, the guest uses only a console (an 8250, which QEMU serves synchronously). The
results come over a virtio-serial port afterwards, and QEMU's two threads take turns. So a
repeatable guest sees the same events at the same instructions in each run.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from schedlab.base.display.activity import begin_display
from schedlab.base.display.terminal import say
from schedlab.base.host.parent_death import tie, tied
from schedlab.base.host.processor import need_linux_guests
from schedlab.base.host.supervision import supervise
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.needs import LINUX_GUEST, need
from schedlab.errors import WrongUsage
from schedlab.machines.folder import CONSOLE
from schedlab.machines.linux import image, kvm
from schedlab.machines.linux.kernel import Kernel, named_kernel, needs
from schedlab.machines.linux.kvm_fallback import Choice
from schedlab.machines.linux.packages import packages
from schedlab.machines.linux.topology import topology_options
from schedlab.machines.outcome import LIMIT, PANIC, indent, read_console, tail_of
from schedlab.machines.qemu import emulator
from schedlab.machines.spec import Release
from schedlab.paths import BUILD, ROOT
from schedlab.workload.shapes.model import Shape

PROGRAM = "qemu-system-x86_64"
RESULTS = "results"
"""Subfolder of the boot's folder that receives /result."""
CPUS_MAX = 64

REPEATABLE, FREE_RUNNING, KVM = "repeatable", "free-running", "KVM"


NANOSECONDS_SHIFT = 2
"""An instruction of a repeatable guest takes 2 to this power nanoseconds of guest time."""

_RAMDISK = "ramdisk.cpio"
_STARTING_SECONDS = 120
"""Host seconds for the boot; the script's limit starts after it."""
_SLOWEST = 20
"""Host seconds that one guest second may take on a busy host."""
SILENT_SECONDS = 30.0
"""Host seconds after which a guest that has not reached its init is restarted without KVM."""
_SIGN, _MARK = "alive", "without-kvm"
_SIGN_PORT = 9
"""Must be the same as in linux/guest/init."""
_TURNS = BUILD / "linux" / "taking_turns.so"
"""Linked into the boot's folder, because LD_PRELOAD paths cannot contain blanks."""


@dataclass(frozen=True)
class GuestJob:
    """The job of a guest."""

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
    """The guest's console and ports, and the matching kernel arguments."""

    options: tuple[str, ...]
    """QEMU options for the console and the ports."""
    words: tuple[str, ...] = ()
    """Kernel arguments for the guest's init."""
    kvm_words: tuple[str, ...] = ()
    """Additional kernel arguments under KVM."""


def port(name: str, number: int, end: str) -> tuple[str, ...]:
    """Returns QEMU options for /dev/vport0pNUMBER; `end` is the host's side of the port."""
    kind, _, rest = end.partition(",")
    device = f"virtserialport,chardev={name},name={name},nr={number}"
    return ("-chardev", f"{kind},id={name},{rest}", "-device", device)


PORTS = ("-device", "virtio-serial-pci,ioeventfd=off")
"""The bus of the ports; without ioeventfd, it answers synchronously."""
_PACKED = "results.tar"
_RESULTS_PORT = (*PORTS, *port("results", 1, f"file,path={_PACKED}"))
JOB = Wiring(("-serial", "stdio", *_RESULTS_PORT))
"""Runs the job's script and returns its results."""
SHELL = Wiring(("-serial", "mon:stdio", *_RESULTS_PORT), ("schedlab_shell=1",))
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
class Prepared:
    """A guest that is ready to start."""

    command: list[str]
    mode: str
    host_limit_s: float
    """Host seconds after which the guest is considered hung."""


def boot(job: GuestJob, folder: Path) -> GuestOutcome:
    """Runs a job and stores the console and the results in `folder`.

    Thread-safe. If a signal ends schedlab, the machine is ended first.
    """

    folder.mkdir(parents=True, exist_ok=True)
    console = folder / CONSOLE
    try:
        prepared = prepare(job, folder)
        with signals_raised():
            status = supervise(prepared.command, folder, console, prepared.host_limit_s)
        return outcome(prepared, folder, status)
    finally:
        clean(folder)


def clean(folder: Path) -> None:
    """Deletes the machine's temporary files."""
    for name in (_RAMDISK, _PACKED, _SIGN, _MARK, _TURNS.name):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Turns fatal signals into SystemExit in the main thread, so that `finally` blocks run."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {
        number: signal.signal(number, unwind)
        for number in numbers
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prepare(job: GuestJob, folder: Path, wiring: Wiring = JOB) -> Prepared:
    """Writes the job's ramdisk to `folder` and returns the command that starts the machine there."""
    check(job)
    find_qemu()
    guest_packages = packages()
    kernel = named_kernel(job.kernel) if job.kernel else guest_packages.kernel
    base = image.base_image(guest_packages, job.programs)
    return assemble(job, folder, kernel.bootable, base, wiring)


def assemble(
    job: GuestJob, folder: Path, kernel: Path, base: Path, wiring: Wiring = JOB
) -> Prepared:
    """Does the same with a kernel that is known to be suitable and the archive `base`."""
    release = find_qemu()
    entries = image.job_entries(job.files, job.script)
    image.write_ramdisk(base, entries, folder / _RAMDISK)
    seconds = _STARTING_SECONDS + _SLOWEST * job.limit_s

    def command(mode: str) -> list[str]:
        start = [release.path, *machine_options(mode, job), *device_options(mode, wiring)]
        start += ["-kernel", str(kernel), "-initrd", _RAMDISK]
        return [*start, "-append", kernel_arguments(job, mode, wiring)]

    mode = mode_of(job)
    if mode != KVM:
        before = preload(folder) if mode == REPEATABLE else []
        return Prepared([*tied(), *before, *command(mode)], mode, seconds)
    ways = (command(KVM), command(FREE_RUNNING))
    choice = Choice(*ways, _SIGN, SILENT_SECONDS, _MARK, list(tie()))
    return Prepared([*tied(), *choice.command()], mode, seconds + SILENT_SECONDS)


def check(job: GuestJob) -> None:
    """Raises WrongUsage for an impossible guest."""
    if not 1 <= job.cpus <= CPUS_MAX:
        raise WrongUsage(f"a guest has 1 to {CPUS_MAX} CPUs, not {job.cpus}")
    unknown = set(job.programs) - set(image.BENCHMARKS)
    if unknown:
        known = ", ".join(image.BENCHMARKS)
        raise WrongUsage(f"a guest has {known}, but no {', '.join(sorted(unknown))}")
    if job.memory_mib < 256:
        raise WrongUsage(f"a guest needs at least 256 MiB of memory, not {job.memory_mib}")
    if job.limit_s <= 0:
        raise WrongUsage(f"a guest's limit is a time, not {job.limit_s} s")


def mode_of(job: GuestJob) -> str:
    if job.repeatable:
        return REPEATABLE
    return KVM if job.kvm and not kvm_problem() else FREE_RUNNING


def mode_in_the_end(folder: Path, mode: str) -> str:
    """Returns the actual mode of a guest that was to run in `mode`, from the files in `folder`.

    If it was restarted without KVM, prints the reason and disables KVM for this process.
    """
    if mode == REPEATABLE:
        return mode
    mark = folder / _MARK
    if not mark.is_file():
        return KVM if (folder / _SIGN).exists() else FREE_RUNNING
    why = mark.read_text().strip()
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
    return [*BOARD, *size, *accelerators[mode]]


BOARD = (
    *("-machine", "pc,vmport=off,smm=off,i8042=off"),
    *("-nodefaults", "-no-user-config", "-no-reboot"),
)
"""A minimal PC. Smaller boards (microvm) have no clock to calibrate other clocks with."""


def device_options(mode: str, wiring: Wiring) -> list[str]:
    sign = port("alive", _SIGN_PORT, f"file,path={_SIGN}") if mode == KVM else ()
    return ["-display", "none", *wiring.options, *sign]


def kernel_arguments(job: GuestJob, mode: str, wiring: Wiring = JOB) -> str:
    """Returns the kernel's arguments, which include the arguments of the guest's init."""
    words = ["console=ttyS0", "loglevel=4", "panic=-1", "oops=panic"]
    # Restart by one port write, which ends QEMU; the default method, the keyboard, takes seconds.
    words.append("reboot=p")
    # Self-tests would use CPU time for 10 s, and no second clock exists to verify the TSC.
    words += ["cryptomgr.notests", "tsc=reliable"]
    if mode != REPEATABLE:
        # The kernel tests its timer briefly, and panics if the host delayed QEMU during the test.
        words.append("no_timer_check")
    else:
        # QEMU before 8.1 may not run a CPU for that long; this must not unload a policy.
        words.append("rcupdate.rcu_cpu_stall_timeout=300")
        # QEMU marks pages as accessed when it resizes its tables, depending on the host's time. So
        # the guest must not use these marks.
        words += ["damon_stat.enabled=N", "transparent_hugepage=never"]
    words += [f"schedlab_seed={job.seed}", f"schedlab_limit={job.limit_s:g}", *wiring.words]
    words += wiring.kvm_words if mode == KVM else ()
    return " ".join(words)


def interact(job: GuestJob, folder: Path) -> int:
    """Runs a guest with a shell on this terminal instead of the script; returns QEMU's exit status.

    Ctrl-A X switches it off; Ctrl-C goes to the guest.
    """
    prepared = prepare(job, folder, SHELL)
    begin_display()
    with subprocess.Popen(prepared.command, cwd=folder) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


# --- outcomes


def outcome(prepared: Prepared, folder: Path, exit_status: int | None) -> GuestOutcome:
    """Returns the outcome from the machine's files; `exit_status` is None if the machine was killed."""
    console = read_console(folder / CONSOLE)
    place = folder / RESULTS
    word = unpack(folder / _PACKED, place)
    status, message = ending(word, exit_status, prepared.host_limit_s, console)
    mode = mode_in_the_end(folder, prepared.mode)
    return GuestOutcome(status, place, console, mode, message)


def ending(word: str, exit_status: int | None, seconds: float, console: str) -> tuple[int, str]:
    """Returns a job's status and why it did not finish; `word` is init's report."""
    if word == "limit":
        return LIMIT, "the script reached its time limit and was ended" + tail_of(console)
    if word.isdigit():
        return int(word), ""
    if "Kernel panic" in console:
        return PANIC, "the guest's kernel panicked:\n" + indent(panic_lines(console))
    if exit_status is None:
        message = f"the guest did not end within {seconds:.0f} s of the host and was ended"
        return LIMIT, message + tail_of(console)
    if exit_status < 0:
        name = signal.Signals(-exit_status).name
        return exit_status, f"the guest's QEMU was ended by {name}" + tail_of(console)
    message = f"the guest ended without handing over its results (QEMU's status: {exit_status})"
    return exit_status or 1, message + tail_of(console)


def panic_lines(console: str) -> list[str]:
    """Returns the lines of a panic with the five lines before it, which often name the reason."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if "Kernel panic" in line or "BUG:" in line or "Oops:" in line:
            return lines[max(0, number - 5) : number + 40]
    return lines[-40:]


def unpack(packed: Path, place: Path) -> str:
    """Unpacks /result from the guest's archive, which may be incomplete.

    Returns the status in the archive; "" if it is missing.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if not packed.exists():
        return ""
    word = ""
    with suppress(tarfile.ReadError, EOFError), tarfile.open(packed, "r|") as tar:
        for member in tar:
            if member.name == "status":
                stream = tar.extractfile(member)
                word = stream.read().decode().strip() if stream else ""
            else:
                unpack_member(tar, member, place)
    return word


def unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Unpacks files and folders only, and only inside of `place`, because guests are not trusted."""
    top, *parts = Path(member.name).parts or ("",)
    if top != "result" or not parts or ".." in parts:
        return
    target = place.joinpath(*parts)
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
    need(*LINUX_GUEST)
    return emulator(PROGRAM)


def kvm_problem() -> str:
    """Returns why guests cannot use KVM; "" if they can. A probe runs once per process."""
    if kvm.switched_off():
        return f"it is switched off, as by {kvm.OFF}=1"
    return kvm.given_up() or _kvm_tried()


@cache
def _kvm_tried() -> str:
    return kvm.problem([*tied(), find_qemu().path, *BOARD])


__all__ = ["GuestJob", "GuestOutcome", "Kernel", "boot", "find_qemu", "interact", "needs"]


def preload(folder: Path) -> list[str]:
    """Returns the prefix of QEMU's command, run in `folder`, that makes its two threads take turns.

    See linux/qemu/taking_turns.c.
    """
    build(str(_TURNS.relative_to(ROOT)))
    link = folder / _TURNS.name
    link.unlink(missing_ok=True)
    link.symlink_to(_TURNS)
    return ["env", f"LD_PRELOAD=./{_TURNS.name}"]
