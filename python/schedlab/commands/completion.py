# SPDX-License-Identifier: MIT
"""`./schedlab completion`: prints shell scripts that complete commands and options."""

import re
import shlex

import click
from click.shell_completion import get_completion_class

from schedlab.paths import ROOT


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in a shell.

    In bash and zsh: eval "$(./schedlab completion bash)"; in fish: ./schedlab completion fish | source. Add the
    line to the shell's startup file, with the path of this checkout.
    """
    completion_class = get_completion_class(shell)
    assert completion_class
    source = completion_class(
        context.find_root().command, {}, "schedlab", "_SCHEDLAB_COMPLETE"
    ).source()
    # click runs the program of this name on the PATH, but the launcher may not be on the PATH.
    source = re.sub(r".*\$\+commands\[.*\n", "", source)
    launcher = shlex.quote(str(ROOT / "schedlab"))
    click.echo(re.sub(r" (\$1|schedlab)\)", lambda _: f" {launcher})", source))
