#!/usr/bin/env python3
"""Finds loops in Swift files that wait without a name, a limit and an end.

    Scripts/check-waits.py FILE-OR-FOLDER...

A loop that sleeps or yields is a poll: `eventually("the event", from: process) { … }` does the same
with a description, ends at once with its process, and has a limit. Loops until
`Task.isCancelled` are work in the background, which a test ends.
"""
import pathlib
import re
import sys

# The function itself.
OWN = "Eventually.swift"
# A pause that is returned ends the loop.
PAUSE = re.compile(
    r"(?<!return )(?<![.\w])(Task\.(sleep|yield)\b|Thread\.sleep\b|(usleep|nanosleep|sleep|sched_yield)\()")
LOOP = re.compile(r"(?<![\w.])(while|repeat)\b(?!\s*[:(,])")
# Comments, texts of several lines, texts of one line; all may be raw.
QUIET = re.compile(
    r'//[^\n]*|/\*.*?\*/|(#*)"""(?:\\.|[^\\])*?"""\1|(#+)"[^\n]*?"\2|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def code(text):
    """Returns a text without its comments and strings, with the same lines and columns."""
    return QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def body(text, start):
    """Returns the places of the braces of a loop; None for text that is no loop."""
    depth = 0
    for place in range(start, len(text)):
        character = text[place]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "{" and depth == 0:
            return place, closing(text, place)
    return None


def closing(text, start):
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return len(text)


def findings(text):
    """Returns the numbers of the lines where a bare poll begins."""
    plain = code(text)
    lines = []
    for found in LOOP.finditer(plain):
        braces = body(plain, found.end())
        if braces is None:
            continue
        start, end = braces
        head = plain[found.end():start]
        if found[1] == "repeat":
            # Its condition comes last, in the rest of the line.
            tail = re.match(r"\s*while\b[^\n]*", plain[end + 1:])
            head = tail[0] if tail else ""
        if "Task.isCancelled" in head:
            continue
        # A loop within the loop has a finding of its own.
        if PAUSE.search(head + own(plain[start + 1:end])):
            lines.append(plain.count("\n", 0, found.start()) + 1)
    return lines


def own(text):
    """Returns the body of a loop without the loops in it."""
    while (found := LOOP.search(text)) and (braces := body(text, found.end())):
        text = text[:found.start()] + text[braces[1] + 1:]
    return text


def main(paths):
    count = 0
    for path in paths:
        place = pathlib.Path(path)
        files = sorted(place.rglob("*.swift")) if place.is_dir() else [place]
        for file in files:
            if file.name == OWN:
                continue
            for line in findings(file.read_text(encoding="utf-8")):
                count += 1
                print(f"{file}:{line}: a loop waits without a name: use `eventually(\"the event\") {{ … }}`")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
