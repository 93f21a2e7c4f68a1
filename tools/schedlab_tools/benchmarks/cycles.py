# SPDX-License-Identifier: MIT
"""Our kernel on rvsim, a cycle-level emulator: how long CPUs that run side by side wait for run queues.

It has no initial ramdisk, no boot arguments and no device tree of its own: an image in memory has all three
beside the kernel, and a few instructions that lead to it.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from schedlab.errors import MachineUnfit
from schedlab.machines.spec import RunSpec
from schedlab.units import format_time
from schedlab_tools.benchmarks.contention import Contended
from schedlab_tools.benchmarks.peers import FOLDER, answer_of

PEER = "rvsim"
SIDE_BY_SIDE = 0
"""The length of a turn, in the table: CPUs have none."""
_RUNNER = FOLDER / "run_rvsim.py"
_CYCLES = 200_000_000
_LIMIT_SECONDS = 3600
_STUB, _TREE, _DISK = 0x8F00_0000, 0x8F00_1000, 0x8C00_0000
_STUB_CODE = (
    0xF1402573,  # csrr a0, mhartid
    0x00001597,  # auipc a1, 1
    0xFFC58593,  # addi a1, a1, -4: the device tree
    0x00100293,  # li t0, 1
    0x01F29293,  # slli t0, t0, 31: the kernel
    0x00028067,  # jr t0
)
_DEVICES = """\
/dts-v1/;
/ {{ #address-cells = <2>; #size-cells = <2>; compatible = "schedlab,rvsim";
  chosen {{ bootargs = "{arguments}"; linux,initrd-start = <0 {disk}>; linux,initrd-end = <0 {end}>; }};
  cpus {{ #address-cells = <1>; #size-cells = <0>; timebase-frequency = <1000000000>; {cpus} }};
  memory@80000000 {{ device_type = "memory"; reg = <0 0x80000000 0 0xf000000>; }};
  soc {{ #address-cells = <2>; #size-cells = <2>; compatible = "simple-bus"; ranges;
    clint@2000000 {{ compatible = "riscv,clint0"; reg = <0 0x2000000 0 0xc0000>;
      interrupts-extended = <{timers}>; }};
    plic: plic@c000000 {{ compatible = "riscv,plic0"; reg = <0 0xc000000 0 0x4000000>;
      #interrupt-cells = <1>; interrupt-controller; riscv,ndev = <31>; interrupts-extended = <{devices}>; }};
    serial@10000000 {{ compatible = "ns16550a"; reg = <0 0x10000000 0 0x100>; interrupts = <10>;
      interrupt-parent = <&plic>; }};
    test@100000 {{ compatible = "sifive,test0"; reg = <0 0x100000 0 0x1000>; }};
  }};
}};
"""
_CPU = """cpu@{n} {{ device_type = "cpu"; reg = <{n}>; compatible = "riscv";
  riscv,isa = "rv64imac_zicsr_zicntr_sstc"; mmu-type = "riscv,sv39";
  cpu{n}: interrupt-controller {{ #interrupt-cells = <1>; interrupt-controller;
  compatible = "riscv,cpu-intc"; }}; }};"""


def contended_on_rvsim(run: RunSpec, parts: Mapping[str, Path]) -> Contended:
    """Carries a run out there. `parts`: the kernel and the disk. Raises MachineUnfit, with what was printed."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        image = Path(folder) / "image.elf"
        image.write_bytes(image_of(run, parts))
        told = answer_of(PEER, _RUNNER, image, _STUB, run.cpus, _CYCLES, limit_s=_LIMIT_SECONDS)
    if told["status"] != 0:
        raise MachineUnfit(
            f"rvsim: {run.title}: status {told['status']}; it said:\n{told['console']}"
        )
    return of_console(run, told["console"], told["cycles"])


def of_console(run: RunSpec, console: str, cycles: int) -> Contended:
    """From what `stats -c` printed at the end: a line for each CPU."""
    lines = console.splitlines()
    names = next(line.split() for line in lines if line.startswith("cpu "))
    rows = [dict(zip(names, map(int, line.split()), strict=True)) for line in lines[-run.cpus :]]
    waited = sum(row["queue_wait_cycles"] for row in rows)
    return Contended(
        work=run.label,
        policy=str(run.policy),
        cpus=run.cpus,
        turn=SIDE_BY_SIDE,
        waits=sum(row["queue_waits"] for row in rows),
        waited_us=waited / 1000,
        scheduler_us=sum(row["scheduler_cycles"] for row in rows) / 1000,
        of_time=waited / (run.cpus * cycles),
    )


# --- the image


def image_of(run: RunSpec, parts: Mapping[str, Path]) -> bytes:
    """Returns an ELF file of kernel, disk, device tree and the instructions that begin."""
    disk = parts["disk"].read_bytes()
    return _elf(
        _STUB,
        [
            *_segments(parts["kernel"].read_bytes()),
            (_DISK, disk),
            (_STUB, struct.pack(f"<{len(_STUB_CODE)}I", *_STUB_CODE)),
            (_TREE, _device_tree(run, len(disk))),
        ],
    )


def _device_tree(run: RunSpec, disk_bytes: int) -> bytes:
    source = _DEVICES.format(
        arguments=_arguments(run).replace('"', '\\"'),
        disk=hex(_DISK),
        end=hex(_DISK + disk_bytes),
        cpus=" ".join(_CPU.format(n=n) for n in range(run.cpus)),
        timers=" ".join(f"&cpu{n} 3 &cpu{n} 7" for n in range(run.cpus)),
        devices=" ".join(f"&cpu{n} 11 &cpu{n} 9" for n in range(run.cpus)),
    )
    done = subprocess.run(
        ["dtc", "-q", "-I", "dts", "-O", "dtb"],
        input=source.encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def _arguments(run: RunSpec) -> str:
    settings = "".join(f" set={run.settings_text}" if run.settings else "")
    disk = "disk_read=0 disk_write=0 disk_flush=0"
    return (
        f"tick={format_time(run.tick_ns)} policy={run.policy} seed={run.seed}{settings} {disk}"
        f" run=\"sh -c '{run.label}; stats -c'\""
    )


_HEADER, _PROGRAM = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ"
_LOAD = 1


def _segments(elf: bytes) -> Iterator[tuple[int, bytes]]:
    """What an ELF file loads: physical address, and bytes."""
    start, count = (struct.unpack_from(_HEADER, elf)[place] for place in (5, 10))
    for number in range(count):
        kind, _, offset, _, address, size, *_ = struct.unpack_from(
            _PROGRAM, elf, start + number * struct.calcsize(_PROGRAM)
        )
        if kind == _LOAD:
            yield address, elf[offset : offset + size]


def _elf(entry: int, segments: list[tuple[int, bytes]]) -> bytes:
    """An ELF file of RISC-V that loads these."""
    magic = b"\x7fELF\x02\x01\x01"
    header, program = struct.calcsize(_HEADER), struct.calcsize(_PROGRAM)
    told = struct.pack(
        _HEADER, magic, 2, 243, 1, entry, header, 0, 0, header, program, len(segments), 64, 0, 0
    )
    offset = header + program * len(segments)
    for address, content in segments:
        size = len(content)
        told += struct.pack(_PROGRAM, _LOAD, 7, offset, address, address, size, size, 1)
        offset += size
    return told + b"".join(content for _, content in segments)
