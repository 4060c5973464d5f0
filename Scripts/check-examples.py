#!/usr/bin/env python3
"""Compiles each Swift block of the documents, and compares each console block with the programs.

A Swift block is compiled by itself against the built modules, as a user of the library writes it. Values that
a block takes for granted, such as `replica`, are parameters below. Each command of a console block has to exist,
with its options, also if run-console.py cannot run it. A line above a block may have one of these comments:

    <!-- not compiled: REASON -->    the block is left out
    <!-- given: DECLARATIONS -->     what a Swift block takes for granted besides
    <!-- continued -->               the block continues the one before it

    Scripts/check-examples.py .build/debug
"""
import concurrent.futures
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
REASON = re.compile(r"<!-- not compiled: [^>]{10,} -->\s*\Z")
GIVEN = re.compile(r"<!-- given: ((?:(?!-->).)+) -->\s*\Z", re.S)
CONTINUED = re.compile(r"<!-- continued -->\s*\Z")
DECLARATION = re.compile(
    r"(?:@\w+(?:\([^)]*\))? )*(?:public |private |final )*(?:extension|protocol|struct|class|enum|actor|func|var \w+: \w+ \{) ?")
# The values that the blocks take for granted; a block may declare its own.
PRELUDE = """\
import Ferry
import Foundation
import Observation

func show(_ values: Any...) {}
func storedToken() -> String? { nil }
func newToken(_ rejected: String) async throws -> String { rejected }
"""
PARAMETERS = (
    "replica: Replica, database: LocalDatabase, missions: MissionManager, conflict: KeptConflict, "
    "token: String, folder: String")
PROGRAMS = {"ferry", "ferryd", "ferry-sim", "ferry-bench", "ferry-chaos"}


def documents(root=ROOT):
    """Returns the documents with examples for users."""
    places = ["README.md", "SIMULATION.md", "Documentation/*.md", "Client/Ferry/Ferry.docc/*.md"]
    return sorted(path for place in places for path in root.glob(place))


def blocks(text, language):
    """Returns the line and the text of each block of a language that has no reason to be left out."""
    found = []
    for match in FENCE.finditer(text):
        before = text[:match.start()]
        if match[1] != language or REASON.search(before):
            continue
        given = GIVEN.search(before) if language == "swift" else None
        code = (given[1].strip() + "\n" if given else "") + match[2]
        if found and CONTINUED.search(before):
            found[-1] = (found[-1][0], found[-1][1] + code)
        else:
            found.append((before.count("\n") + 1, code))
    return found


def program(code):
    """Returns a whole file for a block: declarations at the top, statements in a function."""
    imports, top, body = [], [], []
    lines = code.split("\n")
    while lines:
        line = lines.pop(0)
        if line.startswith("import "):
            imports.append(line)
        elif DECLARATION.match(line):
            top.append(line)
            # A declaration of several lines ends with a brace at the beginning of a line.
            while lines and not top[-1].startswith("}") and not line.endswith("}"):
                top.append(lines.pop(0))
        elif re.fullmatch(r"(@\w+(\([^)]*\))? ?)+", line):
            top.append(line)
        else:
            body.append(line)
    return "\n".join(
        [PRELUDE, *imports, *top, f"@MainActor func example({PARAMETERS}) async throws {{", *body, "}"])


def compile_block(name, code, build):
    """Returns the compiler's errors for a block."""
    maps = [f"-fmodule-map-file={path}" for path in sorted(ROOT.glob("Sources/C*/module.modulemap"))]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "example.swift")
        path.write_text(program(code), encoding="utf-8")
        arguments = ["swiftc", "-typecheck", "-swift-version", "6", "-I", f"{build}/Modules"]
        arguments += [part for value in maps for part in ("-Xcc", value)] + [str(path)]
        result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return []
    errors = [line.split(" error: ")[-1] for line in result.stderr.split("\n") if ".swift:" in line and " error: " in line]
    return [f"{name}: {error}" for error in dict.fromkeys(errors or [result.stderr])]


def commands(block):
    """Returns the words of each command of Ferry's programs in a console block."""
    found = []
    text = re.sub(r"\\\n", " ", block)
    for line in text.split("\n"):
        if not re.match(r"[$#] |> ", line):
            continue
        for part in re.split(r"&&|\|\||[|;]|\$\(", line[2:]):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                words = part.split()
            while words and (re.match(r"\w+=", words[0]) or words[0] in ("sudo", "nohup", "exec", "time")):
                words.pop(0)
            if words and words[0].rsplit("/", 1)[-1] in PROGRAMS:
                found.append([words[0].rsplit("/", 1)[-1], *words[1:]])
    return found


@functools.cache
def help_text(build, *words):
    """Returns the help of a command; None if there is no such command."""
    result = subprocess.run(
        [f"{build}/{words[0]}", *words[1:], "--help"], capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def command_faults(words, help_text):
    """Returns a line for each part of a command that the program does not have."""
    named, rest = [words[0]], words[1:]
    while rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        text = help_text(*named, rest[0])
        if text is None or text == help_text(*named):
            break
        named.append(rest.pop(0))
    text = help_text(*named)
    if text is None:
        return [f"{' '.join(named)} has no help"]
    if len(named) == 1 and rest and not rest[0].startswith("-"):
        return [f"{words[0]} has no command {rest[0]}"]
    options = {word.split("=")[0] for word in rest if re.match(r"--[a-z]", word)}
    text = re.sub(r"--\[no-\]([a-z0-9-]+)", r"--\1 --no-\1", text)
    known = set(re.findall(r"--[a-z][a-z0-9-]*", text)) | {"--version"}
    return [f"{' '.join(named)} has no option {option}" for option in sorted(options - known)]


def main():
    build = os.path.abspath(sys.argv[1])
    swift = [
        (f"{path.relative_to(ROOT)}:{line}", code)
        for path in documents() for line, code in blocks(path.read_text(encoding="utf-8"), "swift")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = [
            fault for found in pool.map(lambda block: compile_block(*block, build), swift) for fault in found]
    count = 0
    for path in documents():
        for line, code in blocks(path.read_text(encoding="utf-8"), "console"):
            for words in commands(code):
                if not os.path.exists(f"{build}/{words[0]}"):
                    continue
                count += 1
                found = command_faults(words, functools.partial(help_text, build))
                faults += [f"{path.relative_to(ROOT)}:{line}: {fault}" for fault in found]
    print("\n".join(faults) if faults else f"{len(swift)} Swift examples compile, {count} commands exist.")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
