"""``schedgap library list|solve|submit|site``."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedgap.cli.arguments import add_seed, add_settings, add_time_limit, call, given, note, to_json
from schedgap.cli.command import Command


def add_library(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``library list``, ``solve``, ``submit`` and ``site``."""
    actions = parser.add_subparsers(dest="action", metavar="list|solve|submit|site", required=True)
    listed = actions.add_parser(
        "list", help="the records: best schedule and bound known, how far it is proven, by whom"
    )
    solved = actions.add_parser("solve", help="run a method, or one of your own, over the records")
    solved.add_argument("ids", nargs="*", metavar="ID", help="records (default: all, or all of --problem)")
    shown = actions.add_parser("site", help="write the library as static pages, with one JSON file of everything")
    default = {solved: "strongest exact", shown: "all heuristics"}
    for one, words in default.items():
        text = f"an id, or file.py:function; several beside each other (default: {words})"
        one.add_argument("--method", metavar="M", action="append", help=text)
    add_time_limit(shown, "seconds for each run of a method (default 10)")
    shown.add_argument("--out", type=Path, metavar="DIR", required=True, help="the folder of the pages")
    add_time_limit(solved, "seconds for each instance (default 60)")
    add_seed(solved)
    add_settings(solved, "options of the method")
    solved.add_argument("--out", type=Path, metavar="DIR", help="write each result to DIR, for submit")
    for one in (listed, solved, shown):
        one.add_argument("--problem", metavar="P", help="only the records of this problem")
    listed.add_argument(
        "--check",
        action="store_true",
        help="check every record anew; exit status 1 where one fails",
    )
    printed = listed.add_mutually_exclusive_group()
    printed.add_argument("--bks", action="store_true", help="print them in the fields of ScheduleOpt's bks.json")
    submitted = actions.add_parser("submit", help="check a schedule or a certificate, and improve the record")
    submitted.add_argument("id", metavar="ID", help="id of the record")
    submitted.add_argument("solution", nargs="?", metavar="SOLUTION", help="a solution, or what solve --json prints")
    submitted.add_argument("--certificate", metavar="FILE", help="certificate of a bound, from certify")
    submitted.add_argument("--instance", metavar="FILE", help="a new record: an instance imported from a log")
    submitted.add_argument("--license", metavar="L", help="licence of that log: MIT, CC-BY-4.0, ...")
    submitted.add_argument("--cite", metavar="TEXT", help="how that log is cited")
    submitted.add_argument("--by", required=True, metavar="NAME", help="who is named in the record")
    for one in (listed, solved, submitted, shown):
        text = "records of your own, before the shipped ones"
        one.add_argument("--library", type=Path, metavar="DIR", help=f"{text}; submit writes there")
    for form in (printed, solved, submitted):
        form.add_argument("--json", action="store_true", help="print one JSON object")


def run_library(arguments: argparse.Namespace) -> int:
    """0 done; 1 a record or what is submitted does not check; 2 a file is no record; 4 nothing solved; 5 better than a
    proven bound."""
    return {"list": _list, "solve": _solve, "submit": _submit, "site": _site}[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    from schedgap.tools.library import records as library

    malformed: list[str] = []
    records = library.library_records(arguments.problem, library=arguments.library, malformed=malformed.append)
    told = library.records_bks(records) if arguments.bks else library.records_dict(records)
    print(to_json(told) if arguments.json or arguments.bks else library.records_text(records))
    faults = library.library_faults(records) if arguments.check else {}
    for name, lines in faults.items():
        for line in lines:
            note(f"{name}: {line}")
    for line in malformed:
        note(line)
    return 2 if malformed else 1 if faults else 0


def _solve(arguments: argparse.Namespace) -> int:
    from schedgap.tools.library import records as library

    runs = call(library.library_solve, arguments, arguments.ids, arguments.method)
    print(to_json([run.to_dict() for run in runs]) if arguments.json else library.runs_text(runs))
    return library.runs_status(runs)


def _site(arguments: argparse.Namespace) -> int:
    from schedgap.tools.library import records as library

    malformed: list[str] = []
    page = call(library.library_site, arguments, arguments.out, arguments.method or (), malformed=malformed.append)
    print(page)
    for line in malformed:
        note(line)
    return 1 if malformed else 0


def _submit(arguments: argparse.Namespace) -> int:
    from schedgap.tools.library import records as library

    judged = call(
        library.library_submit,
        arguments,
        arguments.id,
        None if arguments.solution is None else given(arguments.solution),
        arguments.certificate,
        instance=None if arguments.instance is None else given(arguments.instance),
    )
    print(to_json(judged.to_dict()) if arguments.json else judged.to_text())
    return 1 if judged.violations else 0


COMMAND = Command(
    "frozen instances with the best known: list, solve, submit", "solve --method ff", add_library, run_library
)
