"""Runs a check of Swift files and prints its findings."""
import pathlib
import sys


def files(arguments):
    for argument in map(pathlib.Path, arguments):
        yield from sorted(argument.rglob("*.swift")) if argument.is_dir() else [argument]


def run(usage, findings, arguments):
    """Prints `file:line: message` for each finding, a line's number and a message, of each file.

    Returns 1 if there is any finding, 2 if a file cannot be read, and 0 otherwise. Without arguments,
    exits with the usage.
    """
    if not arguments:
        sys.exit(usage.strip())
    failed = False
    for path in files(arguments):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        for number, message in findings(text):
            print(f"{path}:{number}: {message}")
            failed = True
    return 1 if failed else 0
