#!/usr/bin/env python3
"""Finds Swift functions whose names begin with a vague verb.

    Scripts/check-names.py FILE-OR-FOLDER...

A call reads by the function's verb. `note` may record, count or log; `record(_:)` records. `put`
alone is the term of stores by key, such as HTTP's PUT, and passes. Prints `file:line: name: verbs to
use instead`; exits with 1 if there is any finding, with 2 if a file cannot be read.
"""
import re
import sys

from swift_findings import run

VERBS = {
    "bring": "apply, send, restore",
    "follow": "watch, read, redirect",
    "give": "return, release",
    "hold": "acquire, defer",
    "keep": "store, cache, defer",
    "note": "record, mark, log",
    "put": "store, insert, postpone",
    "settle": "resolve, finish, reconcile",
    "take": "apply, acquire, dequeue, parse",
    "tell": "notify, report, print",
}
FUNCTION = re.compile(r"^[^/\"]*\bfunc (?:`?)((%s)(?:[A-Z]\w*)?)(?=[(<`])" % "|".join(VERBS))


def findings(text):
    """Returns lines' numbers, functions' names and the verbs to use instead."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = FUNCTION.match(line)
        if match and match[1] != "put":
            found.append((number, match[1], VERBS[match[2]]))
    return found


def messages(text):
    return [
        (number, f"{name}: {verbs}") for number, name, verbs in findings(text)
    ]


def main(arguments):
    return run(__doc__, messages, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
