# SPDX-License-Identifier: MIT
"""The private Python environment of a checkout: made at the first start, with more libraries when a command needs them.

python/requirements.lock pins its libraries: first those of all commands, then, under `# [NAME]`, those of each extra.
The environment is a folder in the user's cache, one for each lock file and version of Python. This module imports only
Python's standard library, because the launcher starts `main` with a Python of the system.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from schedlab.errors import MachineUnfit, SchedlabError, WrongUsage
from schedlab.paths import ROOT, SHARED, cache_folder, shared_cache

LOCK = ROOT / "python" / "requirements.lock"
BASE = ""
"""The extra that each environment has."""


@dataclass(frozen=True)
class Size:
    """Megabytes on x86-64: the download, and the space on the disk afterwards."""

    fetched: int
    installed: int


SIZES = {
    BASE: Size(78, 331),
    "build": Size(103, 431),
    "pictures": Size(34, 84),
    "monitor": Size(4, 20),
    "sweep": Size(45, 220),
    "sql": Size(25, 70),
    "courses": Size(17, 60),
    "playground": Size(61, 200),
    "test": Size(101, 440),
}
_CURE = "name a folder in XDG_CACHE_HOME that you may write to: XDG_CACHE_HOME=/tmp/cache ./schedlab ..."
COMPLETING = "_SCHEDLAB_COMPLETE"
"""Set while a shell completes a word; nothing is installed then."""


@dataclass(frozen=True)
class Environment:
    """The location of an environment, which may not exist yet."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def has(self, extra: str) -> bool:
        """True if Python and the libraries of an extra are installed."""
        return self.python.exists() and self._mark(extra).exists()

    def _mark(self, extra: str) -> Path:
        return self.folder / f"{extra or 'base'}.complete"

    def add(self, extra: str) -> None:
        """Installs the libraries of an extra. If several processes start, one installs and the others wait.

        Raises WrongUsage if there is no place for them, and MachineUnfit if they cannot be
        downloaded.
        """
        shared = shared_cache()
        if (
            shared
            and extra
            and self.folder.is_relative_to(shared)
            and not os.access(self.folder, os.W_OK)
        ):
            raise WrongUsage(
                f"{shared}: this shared cache lacks the libraries of {extra}",
                fix=f"its owner can add them with `./schedlab doctor --install`; or unset {SHARED}",
            )
        if not extra and not find_spec("ensurepip"):
            raise MachineUnfit(
                f"{sys.executable}: the module ensurepip is missing, which creates "
                f"environments; {_no_venv()}"
            )
        with _locked(self.folder.parent):
            if self.has(extra):
                return
            _need_space(self.folder.parent, SIZES[extra].fetched + SIZES[extra].installed)
            what = f"the libraries of {extra}" if extra else "the Python environment"
            _say(
                f"fetching {what} (once; {SIZES[extra].fetched} MB, Python {platform.python_version()})"
            )
            if extra:
                _install(self.python, extra, self.folder)
            else:
                self._make()
            self._mark(extra).touch()

    def _make(self) -> None:
        """Creates the environment under a temporary name, and renames it when it is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for left in self.folder.parent.glob(f"{self.folder.name}.new.*"):  # from a killed start
            shutil.rmtree(left, ignore_errors=True)
        new = self.folder.with_name(f"{self.folder.name}.new.{os.getpid()}")
        try:
            made = _quiet([sys.executable, "-I", "-m", "venv", str(new)], new)
            if made.returncode:
                raise MachineUnfit(
                    f"{new}: {sys.executable} could not create an environment here: "
                    f"{_last(made)}; {_no_venv()}"
                )
            _install(new / "bin" / "python", BASE, new)
            new.rename(self.folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def environment_of(caches: Sequence[Path]) -> Environment:
    """Returns the environment of this checkout and this version of Python.

    It is in the first cache that contains it; otherwise it will be created in the first cache.
    """
    key = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    places = [Environment(cache / "python" / f"{key}-{version}") for cache in caches]
    return next((environment for environment in places if environment.has(BASE)), places[0])


def current_environment() -> Environment | None:
    """Returns the environment of this process, or None if it does not belong to a checkout."""
    current = Environment(Path(sys.prefix))
    return current if current.has(BASE) else None


def need_execution(folder: Path, cure: str) -> None:
    """Raises WrongUsage if the file system of an existing or future folder forbids execution."""
    if not _has_execution(folder):
        raise WrongUsage(
            f"{folder}: is mounted with noexec, so programs and libraries in it cannot run; {cure}"
        )


def _has_execution(folder: Path) -> bool:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return not os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0)


def _place_temporary_programs() -> None:
    """Sets the temporary directory to the cache if programs in the usual one cannot run. Runs start
    from copies of programs.
    """
    if not _has_execution(Path(os.environ.get("TMPDIR") or "/tmp")):
        os.environ["TMPDIR"] = str(cache_folder() / "tmp")
        Path(os.environ["TMPDIR"]).mkdir(parents=True, exist_ok=True)


def libraries_of(extra: str) -> str:
    """Returns the libraries of an extra in the lock file, in pip's format."""
    parts = LOCK.read_text("utf-8").split("\n# [")
    named = {part.partition("]\n")[0]: part.partition("]\n")[2] for part in parts[1:]}
    return {BASE: parts[0], **named}[extra]


def main(arguments: Sequence[str]) -> None:
    """Executes schedlab with these arguments in its environment. Replaces the current process."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        _check_host()
        environment = environment_of(_caches())
        need_execution(environment.folder, _CURE)
        _place_temporary_programs()
        if not environment.has(BASE):
            if COMPLETING in os.environ:
                return
            environment.add(BASE)
        start = str(ROOT / "python" / "start.py")
        program = str(environment.python)
        os.execv(program, [program, "-I", "-X", "utf8", start, "schedlab", *arguments])
    except KeyboardInterrupt:
        _say("interrupted; nothing of the environment is left behind")
        sys.exit(128 + signal.SIGINT)
    except SchedlabError as error:
        _say(str(error))
        sys.exit(WrongUsage.exit_status)
    except OSError as error:
        _say(f"{error}; {_CURE}")
        sys.exit(WrongUsage.exit_status)


def _check_host() -> None:
    if sys.platform not in ("linux", "darwin"):
        place = "WSL 2" if sys.platform == "win32" else "a Linux virtual machine"
        raise WrongUsage(
            f"{platform.system()} is not supported: schedlab runs on Linux and macOS; "
            f"start it in {place} (docs/faq.md)"
        )
    if sys.implementation.name != "cpython" or sys.version_info < (3, 10):
        raise WrongUsage(
            f"{sys.executable}: {sys.implementation.name} {platform.python_version()} "
            "is not supported; set SCHEDLAB_PYTHON to a CPython 3.10 or newer"
        )


def _caches() -> list[Path]:
    """Returns the user's own cache and, if there is one, the shared cache."""
    if not os.environ.get("XDG_CACHE_HOME", "").startswith("/"):
        os.environ.pop("XDG_CACHE_HOME", None)  # XDG ignores a path that is not absolute
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            raise WrongUsage(f"HOME and XDG_CACHE_HOME: neither is an absolute path; {_CURE}")
        if not Path(home).is_dir():
            raise WrongUsage(f"HOME: '{home}' is not a folder; {_CURE}")
    local = cache_folder()
    if local.parent.resolve() == ROOT:
        raise WrongUsage(f"{local}: the cache would be among the files of this checkout; {_CURE}")
    shared = shared_cache()
    if os.environ.get(SHARED) and not (shared and shared.is_dir()):
        _say(
            f"{SHARED} is '{os.environ[SHARED]}', where there is no cache to share; going on with {local}. Name the"
            " folder that was XDG_CACHE_HOME when it was made, or unset it."
        )
        shared = None
    return [local, *([shared] if shared else [])]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if ":" in str(folder):
        raise WrongUsage(
            f"{folder}: the path contains a colon, so Python cannot create an environment; {_CURE}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise WrongUsage(f"{folder}: cannot be written ({error.strerror}); {_CURE}") from None
        raise


def _need_space(folder: Path, megabytes: int) -> None:
    free = shutil.disk_usage(folder).free // 10**6
    if free < megabytes:
        raise WrongUsage(
            f"{folder}: its disk has {free} MB free, and {megabytes} MB are needed; "
            f"free some space, or {_CURE}"
        )


def _install(python: Path, extra: str, environment: Path) -> None:
    """Installs the libraries of an extra with pip. Downloads are stored in the environment until
    unpacked, and count as progress.
    """
    scratch = environment / "tmp"
    scratch.mkdir(exist_ok=True)
    requirements = scratch / "requirements.txt"
    requirements.write_text(libraries_of(extra))
    command = [
        str(python),
        "-I",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-deps",
    ]
    command += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(requirements)]
    try:
        done = _quiet(command, environment, TMPDIR=str(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode:
        raise MachineUnfit(
            f"{done.stderr.strip()}\npip could not install the libraries of {LOCK}; "
            "its message above gives the reason. They come from PyPI: check the "
            "network, or set PIP_INDEX_URL to a mirror. Nothing was changed."
        )


def _quiet(command: list[str], folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that fills a folder, captures its output, and reports progress every few seconds."""
    unset = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    with subprocess.Popen(
        command,
        env={**inherited, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output, messages = process.communicate(timeout=1 if sys.stderr.isatty() else 2)
                    break
                _progress(f"{_megabytes(folder)} MB written")
        except BaseException:
            process.terminate()
            raise
    _progress("")
    if process.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{f'schedlab: {text}' if text else ''}\033[K")
        sys.stderr.flush()
    elif text:
        _say(text)


def _megabytes(folder: Path) -> int:
    """Returns the size of a folder's files. Files may disappear during the count."""
    sizes = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                sizes += os.lstat(os.path.join(place, name)).st_size
    return sizes // 10**6


def _last(done: subprocess.CompletedProcess[str]) -> str:
    words = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return words[-1] if words else f"status {done.returncode}"


def _no_venv() -> str:
    """Returns what to do if Python cannot create environments, as on Debian without python3-venv."""
    if Path("/etc/debian_version").exists():
        return "install python3-venv (sudo apt-get install python3-venv), or name another Python in SCHEDLAB_PYTHON"
    return "name another Python in SCHEDLAB_PYTHON"


def _say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
