# SPDX-License-Identifier: MIT
"""Manages the TLS certificate of a Dask cluster.

Only owners of the certificate can connect, because a client can run any program on the cluster.
Scheduler, workers and clients use the same self-signed certificate. Each of them requires this
certificate from the others.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import SchedlabError, WrongUsage, format_parameter

CREATE_CERTIFICATE = "create one with ./schedlab dask certificate FOLDER"
SCHEME = "tls://"
_FILE_NAMES = ("certificate.pem", "key.pem")
_OPENSSL = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-subj", "/CN=schedlab", "-days", "365",
)  # fmt: skip


@dataclass(frozen=True)
class Certificate:
    """The files of a certificate."""

    certificate: Path
    key: Path

    def environment(self) -> dict[str, str]:
        """Returns the environment variables that make Dask's programs accept only this certificate."""
        prefix = "DASK_DISTRIBUTED__COMM__"
        variables = {
            f"{prefix}REQUIRE_ENCRYPTION": "True",
            f"{prefix}TLS__CA_FILE": str(self.certificate),
        }
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            variables[f"{prefix}TLS__{role}__CERT"] = str(self.certificate)
            variables[f"{prefix}TLS__{role}__KEY"] = str(self.key)
        return variables


def read_certificate(folder: Path) -> Certificate:
    """Reads a certificate.

    Raises WrongUsage if the certificate is missing, or if other users can read its key.
    """
    certificate = Certificate(*(folder.absolute() / name for name in _FILE_NAMES))
    for path in (certificate.certificate, certificate.key):
        if not path.is_file():
            raise WrongUsage(
                f"contains no {path.name}",
                what=format_parameter("certificate", folder),
                fix=CREATE_CERTIFICATE,
            )
    key_status = certificate.key.stat()
    if key_status.st_uid != os.getuid() or stat.S_IMODE(key_status.st_mode) & 0o077:
        raise WrongUsage(
            f"other users can read {certificate.key.name}, which is secret",
            what=format_parameter("certificate", folder),
            fix=f"own it and run `chmod 600 {certificate.key}`, or {CREATE_CERTIFICATE}",
        )
    return certificate


def certificate_for(scheduler: str, folder: Path | None) -> Certificate:
    """Returns the certificate in `folder` for connections to `scheduler`.

    Raises WrongUsage if the connection would not be authenticated.
    """
    if not scheduler.startswith(SCHEME):
        raise WrongUsage(
            "an address without TLS: everyone who can connect can run code as the cluster's owner "
            "(docs/sweeps.md)",
            what=format_parameter("scheduler", scheduler),
            fix=f"use an address such as {SCHEME}10.0.0.1:8786",
        )
    if folder is None:
        raise WrongUsage(
            "the certificate is missing",
            what=format_parameter("scheduler", scheduler),
            fix=f"add `certificate=FOLDER`; {CREATE_CERTIFICATE}",
        )
    return read_certificate(folder)


def create_certificate(folder: Path) -> None:
    """Creates a certificate in a new folder.

    Raises WrongUsage if the folder exists, and SchedlabError if openssl fails.
    """
    if folder.exists():
        raise WrongUsage(f"{folder}: exists already; name another folder, or move this one away")
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        certificate, key = (str(path / name) for name in _FILE_NAMES)
        _run_openssl([*_OPENSSL, "-out", certificate, "-keyout", key])
        os.chmod(key, 0o600)
        os.rename(path, folder)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _run_openssl(command: list[str]) -> None:
    try:
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise SchedlabError(
            f"{command[0]} is not installed, and creates certificates; run apt install {command[0]}"
        ) from None
    except subprocess.CalledProcessError as error:
        raise SchedlabError(
            f"{command[0]} created no certificate: {error.stderr.strip()}",
            fix=f"update {command[0]}, and repeat the command",
        ) from None
