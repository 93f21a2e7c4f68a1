# SPDX-License-Identifier: MIT
"""Boots a Linux guest, has it run one script, and hands back what that has left.

Nothing but a console (an 8250, which QEMU serves at once) moves while the script runs. Its results
come over a virtio-serial port when it has ended, and QEMU's two threads take turns. So a repeatable
guest sees the same events at the same instructions each time.
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

from schedlab.base.display.terminal import say
from schedlab.base.display.working import begin_display
from schedlab.base.host.processor import need_linux_guests
from schedlab.base.host.supervision import supervise
from schedlab.base.host.tied import tie, tied
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.needs import LINUX_GUEST, need
from schedlab.errors import WrongUsage
from schedlab.machines.folder import CONSOLE
from schedlab.machines.linux import image, kvm
from schedlab.machines.linux.kernel import Kernel, named_kernel, needs
from schedlab.machines.linux.packages import packages
from schedlab.machines.linux.second_start import Choice
from schedlab.machines.linux.topology import topology_options
from schedlab.machines.outcome import LIMIT, PANIC, indent, read_console, tail_of
from schedlab.machines.qemu import emulator
from schedlab.machines.spec import Release
from schedlab.paths import BUILD, ROOT
from schedlab.workload.shapes.model import Shape

PROGRAM = "qemu-system-x86_64"
RESULTS = "results"
"""The folder, in that of the boot, that /result becomes."""
CPUS_MAX = 64

REPEATABLE, FREE_RUNNING, KVM = "repeatable", "free-running", "KVM"


NANOSECONDS_SHIFT = 2
"""A repeatable guest's instruction takes 2 to this power in nanoseconds of its own time."""

_RAMDISK = "ramdisk.cpio"
_STARTING_SECONDS = 120
"""Seconds of the host for the boot, before the script's own time begins."""
_SLOWEST = 20
"""Seconds of a busy host that one second of the guest takes at most."""
SILENT_SECONDS = 30.0
"""Seconds of the host after which a guest that has not come to its init is started without KVM."""
_SIGN, _MARK = "alive", "without-kvm"
_SIGN_PORT = 9
"""The same number as in linux/guest/init."""
_TURNS = BUILD / "linux" / "taking_turns.so"
"""Linked into the folder of a boot: the path of a library that is loaded first may not hold a blank."""


@dataclass(frozen=True)
class GuestJob:
    """What a guest is to do."""

    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Files by their names below /job; all are executable."""
    script: str = ""
    """A script for sh, which root runs in /job, with /job on the PATH; it leaves its results in
    /result."""
    cpus: int = 1
    memory_mib: int = 1024
    shape: Shape | None = None
    """Of as many CPUs. None: as QEMU has it."""
    repeatable: bool = True
    seed: int = 1
    """Stirs the kernel's random numbers; the script has it as $schedlab_seed."""
    limit_s: float = 60
    """Seconds of the guest's time for the script."""
    kernel: Path | None = None
    """None: the one of the packages."""
    programs: Sequence[str] = image.BENCHMARKS
    """The benchmarks that the script calls."""
    kvm: bool = True
    """A free-running guest uses it, if the host has it."""


@dataclass(frozen=True)
class Wiring:
    """What is connected to a guest, and what it is there for."""

    options: tuple[str, ...]
    """QEMU's, of the console and the ports."""
    words: tuple[str, ...] = ()
    """Words of the kernel's command line: they tell init what to do."""
    kvm_words: tuple[str, ...] = ()
    """Besides, under KVM."""


def port(name: str, number: int, end: str) -> tuple[str, ...]:
    """/dev/vport0pNUMBER of the guest; `end`: what the host has at its other end."""
    kind, _, rest = end.partition(",")
    device = f"virtserialport,chardev={name},name={name},nr={number}"
    return ("-chardev", f"{kind},id={name},{rest}", "-device", device)


PORTS = ("-device", "virtio-serial-pci,ioeventfd=off")
"""What ports are plugged into: they answer at once instead of by another thread."""
_PACKED = "results.tar"
_RESULTS_PORT = (*PORTS, *port("results", 1, f"file,path={_PACKED}"))
JOB = Wiring(("-serial", "stdio", *_RESULTS_PORT))
"""Runs the job's script, and hands over what that has left."""
SHELL = Wiring(("-serial", "mon:stdio", *_RESULTS_PORT), ("schedlab_shell=1",))
"""A shell at this terminal."""


@dataclass(frozen=True)
class GuestOutcome:
    """What came of it."""

    status: int
    """The script's; 101 after a panic, 102 if it was not ended in time; negative for a signal
    that ended the machine itself."""
    results: Path
    """All that the script has left in /result; empty if the guest did not come to hand it over."""
    console: str
    mode: str
    """repeatable, free-running or KVM."""
    message: str = ""
    """Why the script did not come to its end by itself; "" if it did, whatever its status."""

    @property
    def finished(self) -> bool:
        """The script came to its end, whatever its status."""
        return not self.message


@dataclass(frozen=True)
class Prepared:
    """A guest that can be started."""

    command: list[str]
    mode: str
    host_limit_s: float
    """Seconds of the host after which it must hang."""


def boot(job: GuestJob, folder: Path) -> GuestOutcome:
    """Runs a job. `folder` then holds the console and the results.

    May be called in any thread. If a signal ends schedlab, the machine is ended before.
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
    """Takes away what was there for the machine alone."""
    for name in (_RAMDISK, _PACKED, _SIGN, _MARK, _TURNS.name):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def signals_raised() -> Iterator[None]:
    """In the main thread, a signal that would end schedlab at once unwinds it instead."""
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
    """Writes a job's ramdisk into `folder`; says how to start the machine, from within there."""
    check(job)
    find_qemu()
    guest_packages = packages()
    kernel = named_kernel(job.kernel) if job.kernel else guest_packages.kernel
    base = image.base_image(guest_packages, job.programs)
    return assemble(job, folder, kernel.bootable, base, wiring)


def assemble(
    job: GuestJob, folder: Path, kernel: Path, base: Path, wiring: Wiring = JOB
) -> Prepared:
    """The same with this kernel, of which it is known that it serves, and the archive `base`."""
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
    """Raises WrongUsage for what no guest can be."""
    if not 1 <= job.cpus <= CPUS_MAX:
        raise WrongUsage(f"a guest has 1 to {CPUS_MAX} CPUs, not {job.cpus}")
    unknown = set(job.programs) - set(image.BENCHMARKS)
    if unknown:
        known = ", ".join(image.BENCHMARKS)
        raise WrongUsage(f"a guest has {known}, but no {', '.join(sorted(unknown))}")
    if job.memory_mib < 256:
        raise WrongUsage(f"a guest needs 256 MiB of memory at least, not {job.memory_mib}")
    if job.limit_s <= 0:
        raise WrongUsage(f"a guest's limit is a time, not {job.limit_s} s")


def mode_of(job: GuestJob) -> str:
    if job.repeatable:
        return REPEATABLE
    return KVM if job.kvm and not kvm_problem() else FREE_RUNNING


def mode_in_the_end(folder: Path, mode: str) -> str:
    """How a guest that was to run in `mode` did: by what was left in `folder`.

    Says so if it had to be started a second time; KVM is then not tried again by this process.
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
    """CPUs, memory and time.

    One thread for all CPUs: with one for each, QEMU 7.2's guests crash now and then at the start.
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
"""A PC without what is not needed. Boards with less (microvm) have no clock to measure others by."""


def device_options(mode: str, wiring: Wiring) -> list[str]:
    sign = port("alive", _SIGN_PORT, f"file,path={_SIGN}") if mode == KVM else ()
    return ["-display", "none", *wiring.options, *sign]


def kernel_arguments(job: GuestJob, mode: str, wiring: Wiring = JOB) -> str:
    """What the kernel and, by way of it, the guest's init are told."""
    words = ["console=ttyS0", "loglevel=4", "panic=-1", "oops=panic"]
    # One write to a port restarts the guest, by which QEMU ends. Asking a keyboard first takes seconds.
    words.append("reboot=p")
    # Self-tests would take CPU time for ten seconds; no second clock is there to doubt this one.
    words += ["cryptomgr.notests", "tsc=reliable"]
    if mode != REPEATABLE:
        # The kernel tries its timer for a moment, and panics if the host had no time for QEMU then.
        words.append("no_timer_check")
    else:
        # QEMU before 8.1 may leave a CPU out for that long, which no policy should be ended for.
        words.append("rcupdate.rcu_cpu_stall_timeout=300")
        # When QEMU marks a page as accessed depends on the host's time, by which it resizes its
        # tables: so nothing in the guest must go by these marks.
        words += ["damon_stat.enabled=N", "transparent_hugepage=never"]
    words += [f"schedlab_seed={job.seed}", f"schedlab_limit={job.limit_s:g}", *wiring.words]
    words += wiring.kvm_words if mode == KVM else ()
    return " ".join(words)


def interact(job: GuestJob, folder: Path) -> int:
    """A guest at this terminal, with a shell instead of the script. QEMU's exit status.

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


# --- what came of it ------------------------------------------------------------------------------


def outcome(prepared: Prepared, folder: Path, exit_status: int | None) -> GuestOutcome:
    """The outcome, by what the machine has left in its folder. `exit_status` is None if it was
    ended."""
    console = read_console(folder / CONSOLE)
    place = folder / RESULTS
    word = unpack(folder / _PACKED, place)
    status, message = ending(word, exit_status, prepared.host_limit_s, console)
    mode = mode_in_the_end(folder, prepared.mode)
    return GuestOutcome(status, place, console, mode, message)


def ending(word: str, exit_status: int | None, seconds: float, console: str) -> tuple[int, str]:
    """A job's status, and why it did not come to its end; `word` is what init says of it."""
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
    """The panic's lines, and a few before: what came before is often the reason."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        if "Kernel panic" in line or "BUG:" in line or "Oops:" in line:
            return lines[max(0, number - 5) : number + 40]
    return lines[-40:]


def unpack(packed: Path, place: Path) -> str:
    """Takes /result out of what the guest has handed over, as far as it came.

    The status that came with it; "" if it did not come to that.
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
    """Unpacks files and folders alone, and none outside of `place`: a guest is not trusted."""
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


# --- the host -------------------------------------------------------------------------------------


@cache
def find_qemu() -> Release:
    """The QEMU on the PATH, if it serves."""
    need_linux_guests()
    need(*LINUX_GUEST)
    return emulator(PROGRAM)


def kvm_problem() -> str:
    """Why a guest cannot have the host's own CPUs; "" if it can. Tried, not guessed, once a process."""
    if kvm.switched_off():
        return f"it is switched off, as by {kvm.OFF}=1"
    return kvm.given_up() or _kvm_tried()


@cache
def _kvm_tried() -> str:
    return kvm.problem([*tied(), find_qemu().path, *BOARD])


__all__ = ["GuestJob", "GuestOutcome", "Kernel", "boot", "find_qemu", "interact", "needs"]


def preload(folder: Path) -> list[str]:
    """Returns what stands before QEMU's command, which is started from within `folder`, so that its two threads take
    turns (linux/qemu/taking_turns.c)."""
    build(str(_TURNS.relative_to(ROOT)))
    link = folder / _TURNS.name
    link.unlink(missing_ok=True)
    link.symlink_to(_TURNS)
    return ["env", f"LD_PRELOAD=./{_TURNS.name}"]
