# SPDX-License-Identifier: MIT
"""`./schedlab dask`: starts the scheduler and the workers of a cluster."""

import os
from pathlib import Path

import click

from schedlab.base.display.terminal import say
from schedlab.commands.options import FOLDER
from schedlab.errors import WrongUsage
from schedlab.paths import cache_folder

_INSECURE_OPTIONS = ("--protocol", "--dashboard", "--dashboard-address", "--jupyter")
"""Options of Dask that would admit users without the certificate."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--certificate",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder with the cluster's certificate; the same for scheduler, workers and clients.",
)
@click.argument(
    "arguments",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="scheduler|worker|certificate [ARGUMENT]...",
)
def dask(certificate: Path | None, arguments: tuple[str, ...]) -> None:
    """Start Dask's scheduler or a worker, to sweep on a cluster.

    First run `./schedlab dask certificate FOLDER` and copy that folder to each host over a secret channel. On one
    host, run `./schedlab dask scheduler --certificate FOLDER --host ADDRESS`; on each, `./schedlab dask worker
    --certificate FOLDER tls://ADDRESS:8786 --nworkers 8 --nthreads 1`. Then run `./schedlab sweep --scheduler
    tls://ADDRESS:8786 --certificate FOLDER`. Everyone with the certificate can run code on the workers; others
    are rejected.
    """
    from schedlab.base.host.isolated import module_command
    from schedlab.base.toolchain.needs import need_extra
    from schedlab.runs import certificate as certificates

    need_extra("sweep")

    program, *others = arguments or ("",)
    if program == "certificate" and len(others) == 1:
        certificates.create_certificate(Path(others[0]))
        say(f"schedlab: {others[0]}: copy this folder to each host of the cluster; it is secret")
        return
    if program not in ("scheduler", "worker"):
        raise WrongUsage(
            f"{' '.join(('dask', *arguments))}: expected scheduler, worker, or certificate FOLDER"
        )
    refuse_insecure_options(others)
    if certificate is None:
        raise WrongUsage(
            f"dask {program}: without a certificate, everyone who can connect can run "
            f"code as you; add --certificate FOLDER ({certificates.CREATE_CERTIFICATE})"
        )
    os.environ |= {
        **certificates.read_certificate(certificate).environment(),
        "POLARS_MAX_THREADS": "1",
        "DASK_TEMPORARY_DIRECTORY": str(scratch_folder()),
        # Dask cannot run without its HTTP servers. They serve nothing, and only to this host.
        "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }
    closed_options = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    command = module_command("dask", program, *closed_options, *others)
    os.execv(command[0], command)


def refuse_insecure_options(arguments: list[str]) -> None:
    """Raises WrongUsage for arguments that would admit users without the certificate."""
    for argument in arguments:
        if "tcp://" in argument or argument.partition("=")[0] in _INSECURE_OPTIONS:
            raise WrongUsage(
                f"dask {argument}: accepts users without the certificate; leave it out"
            )


def scratch_folder() -> Path:
    """Returns the folder that Dask writes to and loads from. No other user may write to it."""
    folder = cache_folder() / "dask"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder
