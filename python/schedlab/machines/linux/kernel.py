# SPDX-License-Identifier: MIT
"""Checks whether a Linux kernel image can run policies."""

import gzip
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import MachineUnfit

NEEDED_OPTIONS: Mapping[str, str] = {
    "CONFIG_SCHED_CLASS_EXT": "sched_ext, which runs the policies",
    "CONFIG_BPF_SYSCALL": "BPF programs",
    "CONFIG_BPF_JIT": "BPF programs as machine code, which sched_ext asks for",
    "CONFIG_DEBUG_INFO_BTF": "the kernel's types, for BPF programs",
    "CONFIG_FUSE_FS": "the files sched_status and sched_tunables",
    "CONFIG_BLK_DEV_INITRD": "the guest's files",
    "CONFIG_DEVTMPFS": "its devices",
    "CONFIG_TMPFS": "its memory for files",
    "CONFIG_SERIAL_8250_CONSOLE": "its console",
    "CONFIG_ACPI": "finding its devices, and switching it off",
    "CONFIG_VIRTIO_PCI": "the way out for results",
    "CONFIG_VIRTIO_CONSOLE": "the way out for results",
    "CONFIG_POSIX_TIMERS": "processes that sleep",
}
"""Kernel options that must be built in (=y), and what they are needed for."""

_PAYLOAD_MAGIC = b"HdrS"
_CONFIG_BEGIN, _CONFIG_END = b"IKCFG_ST", b"IKCFG_ED"


@dataclass(frozen=True)
class Kernel:
    """A bootable kernel image (bzImage), and files that belong to it."""

    image: Path
    release: str
    config: Path | None = None
    program: Path | None = None
    """The uncompressed kernel (an ELF file), which makes guests boot faster."""

    def config_text(self) -> str:
        """Returns the kernel's configuration; "" if unknown."""
        return self.config.read_text() if self.config else ""

    @property
    def bootable(self) -> Path:
        """The file to boot: the uncompressed kernel if there is one."""
        return self.program if self.program and self.program.exists() else self.image

    def unpack(self) -> None:
        """Writes `program` if this host can unpack the image."""
        if self.program:
            content = decompress(compressed_payload(self.image.read_bytes()))
            if content and is_bootable_program(content):
                self.program.write_bytes(content)


def find_kernel(tree: Path) -> Kernel:
    """Returns the kernel of an unpacked package."""
    images = sorted(tree.glob("usr/lib/modules/*/vmlinuz")) or sorted(tree.glob("boot/vmlinuz-*"))
    if not images:
        raise MachineUnfit(
            f"{tree}: the kernel's package has no usr/lib/modules/*/vmlinuz or boot/vmlinuz-*; "
            "delete this folder to fetch the package again"
        )
    image = images[0]
    release = image.parent.name if image.name == "vmlinuz" else image.name.partition("-")[2]
    configs = [image.parent / "config", image.with_name(f"config-{release}")]
    config = next((path for path in configs if path.exists()), None)
    return Kernel(image, release, config, image.with_name("vmlinux"))


def config_problem(text: str) -> str:
    """Returns the options missing in a configuration; "" if none."""
    options = set(text.split("\n"))
    missing = [name for name in NEEDED_OPTIONS if f"{name}=y" not in options]
    return f"without {', '.join(missing)}" if missing else ""


def read_user_kernel(path: Path) -> Kernel:
    """Returns a kernel named by the user, after all checks that are possible without booting it.

    Raises MachineUnfit if it is not suitable.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MachineUnfit(
            f"{path}: cannot be read: {error.strerror}",
            what="`kernel=`",
            fix="name a file that you may read",
        ) from None
    if content[0x202:0x206] != _PAYLOAD_MAGIC:
        raise MachineUnfit(
            f"{path}: not a bootable x86-64 kernel (bzImage)",
            what="`kernel=`",
            fix="name arch/x86/boot/bzImage of a build, or vmlinuz of a distribution",
        )
    release = read_release(content)
    text = embedded_config(content) or find_config(path, release)
    problem = config_problem(text) if text else ""
    if problem:
        raise MachineUnfit(
            f"{path}: kernel {release} was built {problem}; name another, or build it with"
            f" all of these options.\n{describe_kernel_needs()}",
            what="`kernel=`",
        )
    return Kernel(path, release)


def describe_kernel_needs() -> str:
    """Returns the requirements of a kernel as text."""
    width = max(map(len, NEEDED_OPTIONS))
    lines = (f"  {name + '=y':{width + 2}}  {why}" for name, why in NEEDED_OPTIONS.items())
    return "A kernel needs, built in:\n" + "\n".join(lines)


def read_release(content: bytes) -> str:
    """Returns the output of `uname -r`, from the head of the image."""
    (offset,) = struct.unpack_from("<H", content, 0x20E)
    text = content[offset + 0x200 : offset + 0x300].split(b"\0")[0].decode(errors="replace")
    return text.split(" ")[0] or "unknown release"


def find_config(path: Path, release: str) -> str:
    """Returns the configuration at the usual places of builds and distributions; "" if there is none."""
    names = ("config", ".config", f"config-{release}", "../../../.config")
    for place in (path.parent / name for name in names):
        if place.is_file():
            return place.read_text(errors="replace")
    return ""


def embedded_config(content: bytes) -> str:
    """Returns the configuration inside of the kernel (CONFIG_IKCONFIG); "" if it is absent."""
    program = decompress(compressed_payload(content))
    begin = program.find(_CONFIG_BEGIN)
    end = program.find(_CONFIG_END, begin)
    if begin < 0 or end < 0:
        return ""
    try:
        return gzip.decompress(program[begin + len(_CONFIG_BEGIN) : end]).decode(errors="replace")
    except (OSError, EOFError):
        return ""


def compressed_payload(image: bytes) -> bytes:
    """Returns the compressed kernel of an image (boot protocol 2.08 and later); b"" if there is none."""
    if len(image) < 0x250:
        return b""
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    begin = (sectors + 1) * 512 + offset
    return image[begin : begin + length]


_DECOMPRESSORS: Mapping[bytes, tuple[str, ...]] = {
    b"\x1f\x8b": ("gzip", "-dc"),
    b"\x28\xb5\x2f\xfd": ("zstd", "-dc"),
    b"\xfd7zXZ": ("xz", "-dc"),
    b"BZh": ("bzip2", "-dc"),
    b"\x02\x21\x4c\x18": ("lz4", "-dc"),
    b"\x5d\x00\x00": ("xz", "--format=lzma", "-dc"),
}
"""Programs that unpack a compressed kernel, by the kernel's first bytes."""


def decompress(content: bytes) -> bytes:
    """Returns the unpacked ELF file; b"" if this host cannot unpack it."""
    for magic, command in _DECOMPRESSORS.items():
        if content.startswith(magic) and shutil.which(command[0]):
            # The last four bytes are a length, which the unpackers do not expect.
            result = subprocess.run(command, input=content[:-4], capture_output=True, check=False)
            return result.stdout if result.stdout.startswith(b"\x7fELF") else b""
    return b""


def is_bootable_program(content: bytes) -> bool:
    """Returns whether the kernel can boot without a boot loader: a Xen note has its entry point."""
    return bool(
        re.search(rb"\x04\x00\x00\x00[\x04\x08]\x00\x00\x00\x12\x00\x00\x00Xen\x00", content)
    )
