"""The command ``looptune scan``: every loop nest of a program, what is parallel, what is not and why."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from looptune.cli.options import command, defines_of, option, warn


@command(
    examples="""
looptune scan solver.c
looptune scan src -I include --html scan.html
looptune scan build/compile_commands.json
looptune scan solver.c util.c --profile '1000 input.txt'
"""
)
@click.argument("paths", metavar="FILE|DIR|compile_commands.json...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@option("-D", "defines", metavar="NAME[=VALUE]", multiple=True, help="Define a macro.")
@option("-I", "include_dirs", metavar="DIR", multiple=True, type=click.Path(path_type=Path),
        help="Search this directory for headers.")  # fmt: skip
@option("--profile", metavar="[ARGUMENTS]", is_flag=False, flag_value="",
        help="Compile the program with timers, run it with these arguments, and sort by time.")  # fmt: skip
@option("--link", metavar="FLAGS", default="", help="Link the program of --profile with these flags, such as '-lgsl'.")
@option("--jobs", metavar="N", type=click.IntRange(1), help="Analyse N files at a time.  [default: the cores]")
@option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write the table as an HTML page.")
@option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def scan(
    paths: tuple[Path, ...], defines: tuple[str, ...], include_dirs: tuple[Path, ...], profile: str | None, link: str,
    jobs: int | None, html: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """List every loop nest of a program: what is parallel in it, and what is not and why.

    A folder is searched for .c files. The exit code is 1 if no nest was found.
    """
    from looptune.core.cache_file import replace_text
    from looptune.core.errors import UsageError
    from looptune.report.scan import findings, text
    from looptune.report.scan.profile import profiled
    from looptune.report.scan.sources import sources
    from looptune.runtime.device import cores

    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html {html}: the name of the page must end in .html")
    for folder in include_dirs:
        if not folder.is_dir():
            raise UsageError(f"no such folder: {folder}")
    given = sources(paths, defines_of(defines, None), include_dirs)
    files = findings.scan(given, jobs or cores(), lambda done: _progress(done, len(given)))
    missing = dict.fromkeys(name for file in files for name in file.missing)
    if missing:
        warn(f"not found and skipped: {', '.join(missing)}: add their folders with -I")
    if profile is not None:
        files, times = profiled(given, files, shlex.split(profile), shlex.split(link))
        if times.exit_code:
            warn(f"the program ended with {times.exit_code}")
    options = [word for text_ in defines for word in ("-D", text_)] + [w for f in include_dirs for w in ("-I", str(f))]
    if html is not None:
        title = f"Loop nests of {', '.join(p.name or str(p) for p in paths)}"
        try:
            replace_text(html, text.page(files, title, options))
        except OSError as error:
            raise UsageError(f"cannot write {html}: {error.strerror}") from error
    unread = [message for file in files for message in file.problems]
    if as_json:
        click.echo(json.dumps(text.record(files, options), indent=1))
    else:
        click.echo(text.text(files, options), nl=False)
        if unread:
            warn(f"{text.not_read(files)}; --html and --json list them; the first:\n{unread[0]}")
    return 0 if any(file.nests for file in files) else 1


def _progress(done: int, of: int) -> None:
    """Show on a terminal how many files are done."""
    if sys.stderr.isatty():
        end = "\n" if done == of else ""
        click.echo(f"\r{done} of {of} files{end}", err=True, nl=False)
