# SPDX-License-Identifier: MIT
"""The private Python environment of a checkout, which is made when it is first needed.

python/requirements.lock pins its libraries: first those of all commands, then, under `# [NAME]`,
those of each extra. An extra is a group of libraries that only some commands need. The environment
is a folder in the user's cache, one for each lock file and version of Python.

This module imports only Python's standard library, because the launcher runs `main` with a Python
of the system.
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
from schedlab.paths import ROOT, SHARED_CACHE_VARIABLE, cache_folder, shared_cache

LOCK_FILE = ROOT / "python" / "requirements.lock"
BASE_EXTRA = ""
"""Name of the extra whose libraries all commands need."""


@dataclass(frozen=True)
class ExtraSize:
    """Size of an extra in megabytes on x86-64: of the download, and on the disk."""

    fetched: int
    installed: int


EXTRA_SIZES = {
    BASE_EXTRA: ExtraSize(78, 331),
    "build": ExtraSize(103, 431),
    "pictures": ExtraSize(34, 84),
    "monitor": ExtraSize(4, 20),
    "sweep": ExtraSize(45, 220),
    "sql": ExtraSize(25, 70),
    "courses": ExtraSize(17, 60),
    "playground": ExtraSize(61, 200),
    "test": ExtraSize(101, 440),
}
_CACHE_FIX = "set XDG_CACHE_HOME to another folder that you may write to: XDG_CACHE_HOME=/tmp/cache ./schedlab ..."
COMPLETION_VARIABLE = "_SCHEDLAB_COMPLETE"
"""Set while a shell completes a word; nothing is installed then."""


@dataclass(frozen=True)
class Environment:
    """The location of an environment, which may not exist yet."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def has(self, extra: str) -> bool:
        """Returns whether Python and the libraries of an extra are installed."""
        return self.python.exists() and self._installed_file(extra).exists()

    def _installed_file(self, extra: str) -> Path:
        return self.folder / f"{extra or 'base'}.complete"

    def add(self, extra: str) -> None:
        """Installs the libraries of an extra.

        If several processes call this, one installs and the others wait. Raises WrongUsage if there
        is nowhere to store the libraries, and MachineUnfit if they cannot be downloaded.
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
                fix=f"its owner can add them with `./schedlab doctor --install`; or unset {SHARED_CACHE_VARIABLE}",
            )
        if not extra and not find_spec("ensurepip"):
            raise MachineUnfit(
                f"{sys.executable}: the module ensurepip is missing, which creates "
                f"environments; {_venv_advice()}"
            )
        with _locked(self.folder.parent):
            if self.has(extra):
                return
            _require_space(
                self.folder.parent, EXTRA_SIZES[extra].fetched + EXTRA_SIZES[extra].installed
            )
            description = f"the libraries of {extra}" if extra else "the Python environment"
            _say(
                f"fetching {description} (once; {EXTRA_SIZES[extra].fetched} MB, Python {platform.python_version()})"
            )
            if extra:
                _install(self.python, extra, self.folder)
            else:
                self._make()
            self._installed_file(extra).touch()

    def _make(self) -> None:
        """Creates the environment under a temporary name, and renames it when it is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for leftover in self.folder.parent.glob(f"{self.folder.name}.new.*"):  # from a killed start
            shutil.rmtree(leftover, ignore_errors=True)
        new_folder = self.folder.with_name(f"{self.folder.name}.new.{os.getpid()}")
        try:
            result = _run_quietly([sys.executable, "-I", "-m", "venv", str(new_folder)], new_folder)
            if result.returncode:
                raise MachineUnfit(
                    f"{new_folder}: {sys.executable} could not create an environment here: "
                    f"{_last_line(result)}; {_venv_advice()}"
                )
            _install(new_folder / "bin" / "python", BASE_EXTRA, new_folder)
            new_folder.rename(self.folder)
        finally:
            shutil.rmtree(new_folder, ignore_errors=True)


def find_environment(caches: Sequence[Path]) -> Environment:
    """Returns the environment of this checkout and this version of Python.

    It is in the first of the caches that contains it, or else will be made in the first cache.
    """
    key = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()[:16]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    places = [Environment(cache / "python" / f"{key}-{version}") for cache in caches]
    return next((environment for environment in places if environment.has(BASE_EXTRA)), places[0])


def current_environment() -> Environment | None:
    """Returns the environment of this process, or None if it does not belong to a checkout."""
    current = Environment(Path(sys.prefix))
    return current if current.has(BASE_EXTRA) else None


def require_execution(folder: Path, fix: str) -> None:
    """Raises WrongUsage if programs in a folder cannot be executed; the folder need not exist yet."""
    if not _allows_execution(folder):
        raise WrongUsage(
            f"{folder}: is mounted with noexec, so programs and libraries in it cannot run; {fix}"
        )


def _allows_execution(folder: Path) -> bool:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return not os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0)


def _move_temporary_folder() -> None:
    """Sets the temporary directory to the cache if programs in the usual one cannot be executed.

    Runs execute copies of programs from temporary directories.
    """
    if not _allows_execution(Path(os.environ.get("TMPDIR") or "/tmp")):
        os.environ["TMPDIR"] = str(cache_folder() / "tmp")
        Path(os.environ["TMPDIR"]).mkdir(parents=True, exist_ok=True)


def read_extra_libraries(extra: str) -> str:
    """Returns the libraries of an extra in the lock file, in pip's format."""
    lock_parts = LOCK_FILE.read_text("utf-8").split("\n# [")
    extra_libraries = {
        part.partition("]\n")[0]: part.partition("]\n")[2] for part in lock_parts[1:]
    }
    return {BASE_EXTRA: lock_parts[0], **extra_libraries}[extra]


def main(arguments: Sequence[str]) -> None:
    """Executes schedlab with these arguments in its environment. Replaces the current process."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        _check_host()
        environment = find_environment(_caches())
        require_execution(environment.folder, _CACHE_FIX)
        _move_temporary_folder()
        if not environment.has(BASE_EXTRA):
            if COMPLETION_VARIABLE in os.environ:
                return
            environment.add(BASE_EXTRA)
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
        _say(f"{error}; {_CACHE_FIX}")
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
    """Returns the user's own cache and, if there is one, the shared cache.

    Raises WrongUsage if the own cache would be in this checkout or has no absolute path.
    """
    if not os.environ.get("XDG_CACHE_HOME", "").startswith("/"):
        os.environ.pop(
            "XDG_CACHE_HOME", None
        )  # the XDG specification says that a relative path is ignored
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            raise WrongUsage(f"HOME and XDG_CACHE_HOME: neither is an absolute path; {_CACHE_FIX}")
        if not Path(home).is_dir():
            raise WrongUsage(f"HOME: '{home}' is not a folder; {_CACHE_FIX}")
    local = cache_folder()
    if local.parent.resolve() == ROOT:
        raise WrongUsage(
            f"{local}: the cache would be among the files of this checkout; {_CACHE_FIX}"
        )
    shared = shared_cache()
    if os.environ.get(SHARED_CACHE_VARIABLE) and not (shared and shared.is_dir()):
        _say(
            f"{SHARED_CACHE_VARIABLE} is '{os.environ[SHARED_CACHE_VARIABLE]}', where there is no cache to share;"
            f" going on with {local}. Name the folder that was XDG_CACHE_HOME when it was made, or unset it."
        )
        shared = None
    return [local, *([shared] if shared else [])]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Creates a folder and locks it within the block. Raises WrongUsage if that is impossible."""
    if ":" in str(folder):
        raise WrongUsage(
            f"{folder}: the path contains a colon, so Python cannot create an environment; {_CACHE_FIX}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise WrongUsage(
                f"{folder}: cannot be written ({error.strerror}); {_CACHE_FIX}"
            ) from None
        raise


def _require_space(folder: Path, megabytes: int) -> None:
    free = shutil.disk_usage(folder).free // 10**6
    if free < megabytes:
        raise WrongUsage(
            f"{folder}: its disk has {free} MB free, and {megabytes} MB are needed; "
            "free some space, or set XDG_CACHE_HOME to a folder on another disk"
        )


def _install(python: Path, extra: str, environment: Path) -> None:
    """Installs the libraries of an extra with pip.

    Downloads are stored in the environment until they are unpacked, so that its size shows
    progress.
    """
    scratch = environment / "tmp"
    scratch.mkdir(exist_ok=True)
    requirements = scratch / "requirements.txt"
    requirements.write_text(read_extra_libraries(extra))
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
        result = _run_quietly(command, environment, TMPDIR=str(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if result.returncode:
        raise MachineUnfit(
            f"{result.stderr.strip()}\npip could not install the libraries of {LOCK_FILE}; "
            "its message above gives the reason. They come from PyPI: check the "
            "network, or set PIP_INDEX_URL to a mirror. Nothing was changed."
        )


def _run_quietly(
    command: list[str], folder: Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command that fills a folder; captures its output, and shows progress every few seconds."""
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
    """Returns the size of a folder in MB; files may disappear during the count."""
    total_bytes = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total_bytes += os.lstat(os.path.join(place, name)).st_size
    return total_bytes // 10**6


def _last_line(result: subprocess.CompletedProcess[str]) -> str:
    lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
    return lines[-1] if lines else f"status {result.returncode}"


def _venv_advice() -> str:
    """Returns advice for a Python that cannot create environments, as on Debian without python3-venv."""
    if Path("/etc/debian_version").exists():
        return "install python3-venv (sudo apt-get install python3-venv), or set SCHEDLAB_PYTHON to another Python"
    return "set SCHEDLAB_PYTHON to another Python"


def _say(text: str) -> None:
    print(f"schedlab: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
