#!/usr/bin/env python3
"""Counts the branches of the device's machines and of its drivers.

    Scripts/check-machines.py MINIMUM FILE-OR-FOLDER...

A machine decides: it neither awaits nor knows a database, a file or the network. A driver performs. So a
rule is in a machine, where a table tests it. A branch is an `if`, `guard`, `case` of a switch, `for`,
`while`, `? :` or `??`. Prints both sums; exits with 1 if the machines have less than MINIMUM percent of
the branches, with 2 if a file cannot be read.
"""
import re
import sys

from swift_findings import run

IMPORT = re.compile(r"^(?:@\w+ +)?(?:\w+ +)?import +(?:FerrySQLite|FerryPersistence|FerryNetworking)\b", re.M)
DRIVER = re.compile(r"\b(?:async|await|ReplicaFile|SQLite\w*)\b")
BRANCH = re.compile(
    r"(?<!\()(?<!, )\b(?:if|guard|for|while)\b(?!:)|\?\?|\s\?\s|^[ \t]*case\b", re.M)
DECLARED = re.compile(r"^[ \t]*(?:indirect )?case [\w`]+(?:\([^)]*\))?(?: = [^:\n]+)?(?:, *[^:\n]+)?$", re.M)


def code(text):
    """Returns the code without comments, texts and the cases that an enum declares."""
    text = re.sub(r'(#*)"""[\s\S]*?"""\1', '""', text)
    text = re.sub(r'#*"(?:[^"\\\n]|\\.)*"#*', '""', text)
    return DECLARED.sub("", re.sub(r"//.*", "", text))


def is_machine(text):
    return not IMPORT.search(text) and not DRIVER.search(code(text))


def branches(text):
    return len(BRANCH.findall(code(text)))


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__.strip())
    sums = {True: 0, False: 0}

    def count(text):
        sums[is_machine(text)] += branches(text)
        return []

    if failed := run(__doc__, count, arguments[1:]):
        return failed
    share = 100 * sums[True] / max(1, sum(sums.values()))
    print(f"branches: machines {sums[True]}, drivers {sums[False]}, in machines {share:.1f} %")
    if share >= float(arguments[0]):
        return 0
    print(f"less than {arguments[0]} % of the branches are in machines: move a rule into one", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
