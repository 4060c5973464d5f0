#!/usr/bin/env python3
"""Finds Swift code that recognises an error by an English text.

    Scripts/check-errors.py FILE-OR-FOLDER...

A message is for people: it is rewritten, translated and cut. Recognise an error by a code, a type or
a case. A finding is a search for two words in a row, such as `text.contains("was refused")`, or a
message, reason or context that is compared with them. Lines of a program's output (`$0`) may be
searched. If the other side has no code, `// No code: REASON` exempts the lines down to the next
blank one. Prints `file:line: the text`; exits with 1 if there is any finding, with 2 if a file cannot
be read.
"""
import re
import sys

from swift_findings import run

WORDS = r'#*"([^"\n]*?(?:[A-Za-z]{2,} [a-z]{2,}|[A-Z]?[a-z]+ [A-Za-z]{2,})[^"\n]*)"'
SEARCH = re.compile(
    r"(?<!\$0\.)\b(?:has|contains|begins|ends|hasPrefix|hasSuffix|starts|range|firstRange"
    r"|localizedCaseInsensitiveContains)\((?:(?:with|of): ?)?" + WORDS)
COMPARED = re.compile(
    r"\b(?:message|reason|description|detail|context|failure|error)\b[\w.?!()]* [=!]= " + WORDS)
EXEMPTION = re.compile(r"\s*// No code: \S")


def findings(text):
    """Returns lines' numbers and the texts that they look for."""
    found = []
    exempt = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            exempt = False
        elif EXEMPTION.match(line):
            exempt = True
        if exempt or line.lstrip().startswith("//"):
            continue
        found += [(number, match[1]) for rule in (SEARCH, COMPARED) for match in rule.finditer(line)]
    return found


def messages(text):
    return [
        (number, f'recognised by the text "{words}": use a code, a type or a case')
        for number, words in findings(text)
    ]


def main(arguments):
    return run(__doc__, messages, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
