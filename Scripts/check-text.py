#!/usr/bin/env python3
"""Finds text from outside that becomes SQL unquoted, or that is cut and compared by characters.

Swift's String compares by canonical equivalence, and a quote behind U+0600 is one Character with it. SQL, paths,
headers and shells are read by bytes. So names and texts get into SQL by `quoted(…)` alone
(Protocol/FerryProtocol/Identifiers/SQLQuoting.swift) and into shell commands by `shellQuoted` and
`SuggestedCommand` (Sources/Platform/ShellQuoting.swift). Texts are cut by the functions of
Sources/Platform/ByteText.swift or over `utf8`.

    Scripts/check-text.py Client Server …

In shell, Python, JavaScript and C it finds functions that read a text as code.

A finding that is right as it is gets a reason behind `// text:` at its line, or at one of the two lines before it.
"""
import pathlib
import re
import sys

# Folders whose SQL or texts are the program's own, with the reason.
OWN_SQL = {
    "Sources/Proving/Conformance/Workload": "the workload writes SQL of identifiers that it makes itself",
    "Sources/Proving/Conformance/Evidence": "the oracles read tables of the workload",
    "Sources/Proving/Simulation": "the simulation writes SQL of identifiers that it makes itself",
    "Sources/Proving/FerryChaos": "the user of the shop writes SQL of keys that it makes itself",
    "Sources/Proving/FerryBench": "the benchmarks write SQL of their own tables",
    "Tests": "tests write their own SQL",
}
# Folders whose texts are the project's own: figures, reports and samples of programs that no user runs.
OWN_TEXT = {
    "Sources/Proving": "the instruments read output of their own programs",
    "Examples": "samples read their own command line",
    "Tests": "tests compare texts that they make",
}
# The only files that double quotes.
QUOTING = {
    "Protocol/FerryProtocol/Identifiers/SQLQuoting.swift", "Sources/Platform/ShellQuoting.swift",
}

SQL = re.compile(
    r"^\s*(SELECT|INSERT (INTO|OR)|UPDATE|DELETE FROM|CREATE|DROP|ALTER|ATTACH|DETACH|PRAGMA|WITH|"
    r"SET (LOCAL|CONSTRAINTS)|SAVEPOINT|RELEASE|ROLLBACK|LISTEN|UNLISTEN|NOTIFY|COMMENT ON|GRANT|DO|COPY|"
    r"TRUNCATE|DEFAULT|WHERE|FROM|VALUES|ON CONFLICT|FOREIGN KEY|UNIQUE|EXISTS|NOT EXISTS|AND|ORDER BY|JOIN|"
    r"REFERENCES|EXECUTE|AFTER|BEFORE)\b|\b(FROM|WHERE|VALUES|REFERENCES|SELECT|INSERT INTO|DELETE FROM|"
    r"COLLATE)\b"
)
# A message that quotes SQL.
FAILED = re.compile(r"constraint failed")
# What may stand in SQL as it is: quoted names and texts, constants of types, and integers.
QUOTED = re.compile(r"^\(*(try )?(quoted\(|Value\..*\.sqlLiteral$|.*\bquoted\()")
CONSTANT = re.compile(
    r"^(Self|[A-Z]\w*)(\.\w+)+$|^(Self|[A-Z]\w*)(\.\w+)*\([^)]*\)$|\.rawValue$|\.number$|\.count$|^\d+$"
)
NUMBERS = {"number", "mirror", "limit", "turn", "count", "rows", "size", "payload"}
# Members that are a name or a text.
NAME = re.compile(r"\.(name|text|local|column|schema|identifier|description)$")

DOUBLING = re.compile(
    r"""(separator|with): ("''"|"\\"\\""|"'\\\\''")|"'" \+|\+ "'"|"\\"" \+ (?!")|\+ "\\"" ?\+?$"""
)
CHARACTERS = re.compile(
    r"\.(components\(|split\(($|separator: \"|whereSeparator:|maxSplits:)|contains\(\"|hasPrefix\b|"
    r"hasSuffix\b|(firstIndex|lastIndex)\(of: \"|replacingOccurrences|replacing\(\"|trimmingCharacters|"
    r"range\(of: \"|lowercased\(\)|uppercased\(\)|caseInsensitiveCompare)"
    r"|\[\"[^\]]*\]\.contains\(where: \w+\.contains\)"
    # Closures and operators over one character.
    r"|\b(prefix|drop|filter|split|allSatisfy|firstIndex|lastIndex|count)"
    r"(\(while:|\(where:)? ?\(?\{ ?\$0 [!=]= \"(\\?.)\""
    r"|\.(first|last)\??\)? [!=]= \"\\?.\""
    r"|(\$0|[( ]\\)\.(isWhitespace|isNewline|isLetter|isHexDigit)\b"
)
# Text that a value of the program's own makes: the name of a case, or a UUID.
OWN_VALUE = re.compile(r"\b(rawValue|uuidString)\b")
# A regular expression with a class that reads characters, or digits and letters of all scripts.
BY_CHARACTER = re.compile(r"(?<![\w)])/[^/\s](\\/|[^/])*(\\[dswDSW]|\[\^)(\\/|[^/])*/")
# The content of a text in the source.
STRING = re.compile(r'"(\\.|[^"\\])*"')
OF_SCALARS = re.compile(r"matchingSemantics\(\.unicodeScalar\)")
OF_BYTES = re.compile(r"\butf8\b|\b[bB]ytes\b|\bunicodeScalars\b|UInt8\(ascii")
# They read characters also beside bytes.
ALWAYS = re.compile(r"\.(lowercased\(\)|uppercased\(\)|hasPrefix\(|hasSuffix\()")
# Text that becomes code in other languages, with the advice, by the ends of files.
CODE = {
    ".sh": (re.compile(r"(^|[;&|(]\s*)eval\b|\b(psql|sqlite3)\b.*\$|\brm\b[^\"'#]*\$"),
            "text becomes a command or SQL: quote it, or pass it as a parameter"),
    ".py": (re.compile(r"\bshell=True|\bos\.system\(|\b(eval|exec)\(|\bexecute(many)?\(f[\"']"),
            "text becomes a command, code or SQL: pass it as a parameter"),
    ".js": (re.compile(r"\b(inner|outer)HTML\b|insertAdjacentHTML|document\.write\b|\beval\(|new Function\("),
            "text becomes HTML or code: write textContent"),
    ".c": (re.compile(r"\b(system|popen|sprintf|strcat|strcpy|strtok|gets)\("),
           "text becomes a command, or has no bound"),
}
MARKER = re.compile(r"// text: \S+ \S+")


def literals(source):
    """Yields the start and the parts of each string literal: text and interpolated expressions in turn."""
    found = []
    end = len(source)

    def comment(at):
        if source.startswith("//", at):
            stop = source.find("\n", at)
            return end if stop < 0 else stop
        if source.startswith("/*", at):
            stop = source.find("*/", at + 2)
            return end if stop < 0 else stop + 2
        return None

    def opens(at):
        return source[at] == '"' or source[at] == "#" and re.match(r'#+"', source[at:at + 8])

    def literal(at):
        start = at
        while source[at] == "#":
            at += 1
        marks = "#" * (at - start)
        quote = '"""' if source.startswith('"""', at) else '"'
        close, escape = quote + marks, "\\" + marks
        at += len(quote)
        parts, text = [], []
        while at < end:
            if source.startswith(close, at):
                at += len(close)
                break
            if source.startswith(escape + "(", at):
                parts.append("".join(text))
                text = []
                first = at = at + len(escape) + 1
                depth = 1
                while at < end and depth:
                    skipped = comment(at)
                    if skipped is not None:
                        at = skipped
                        continue
                    if opens(at):
                        at = literal(at)
                        continue
                    depth += {"(": 1, ")": -1}.get(source[at], 0)
                    at += 1
                parts.append(" ".join(source[first:at - 1].split()))
                continue
            if source.startswith(escape, at):
                text.append(source[at:at + len(escape) + 1])
                at += len(escape) + 1
                continue
            if quote == '"' and source[at] == "\n":
                break
            text.append(source[at])
            at += 1
        parts.append("".join(text))
        found.append((start, parts))
        return at

    at = 0
    while at < end:
        skipped = comment(at)
        if skipped is not None:
            at = skipped
        elif opens(at):
            at = literal(at)
        else:
            at += 1
    return found


def within(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def sql_findings(source):
    """Returns places and reasons for text in SQL that is not quoted."""
    findings = []
    for start, parts in literals(source):
        texts = parts[0::2]
        text = " ".join(texts)
        if not SQL.search(text) or FAILED.search(text):
            continue
        is_script = source[:start].rstrip().endswith(".execute(")
        for index, expression in enumerate(parts[1::2]):
            if CONSTANT.search(expression) or expression in NUMBERS:
                continue
            if is_script:
                findings.append((start, f"\\({expression}) in a script: write execute(single: …)"))
            if QUOTED.search(expression):
                continue
            before = texts[index]
            if re.search(r"""(^|[^\\])('|\\?")$""", before):
                findings.append((start, f"\\({expression}) between quotes in SQL: write quoted(…)"))
            elif NAME.search(expression):
                findings.append((start, f"\\({expression}) in SQL: write quoted(…)"))
    return findings


def check(path, source):
    """Returns the line and the reason of each finding in a file of Swift."""
    places = []
    if not within(path, OWN_SQL):
        places += sql_findings(source)
    lines = source.split("\n")
    offset = 0
    strict = not within(path, OWN_TEXT)
    for index, line in enumerate(lines):
        code = re.sub(r"(^|\s)//.*", "", line)
        if path not in QUOTING and not within(path, OWN_SQL) and DOUBLING.search(code):
            places.append((offset, "quotes by hand: write quoted(…) or shellQuoted"))
        if strict and BY_CHARACTER.search(code) and not OF_SCALARS.search(code):
            places.append((offset, "matches characters: add .matchingSemantics(.unicodeScalar)"))
        plain = STRING.sub('""', code)
        if plain.endswith(".split("):
            plain += STRING.sub('""', " ".join(lines[index + 1:index + 2]))
        is_text = strict and not OWN_VALUE.search(code)
        if is_text and (ALWAYS.search(plain) or CHARACTERS.search(code) and not OF_BYTES.search(plain)):
            places.append((offset, "cuts or compares characters: use ByteText or utf8"))
        offset += len(line) + 1
    findings = []
    for at, reason in sorted(set(places)):
        number = source.count("\n", 0, at)
        if not any(MARKER.search(line) for line in lines[max(0, number - 2):number + 1]):
            findings.append((number + 1, reason))
    return findings


def check_code(kind, source):
    """Returns the line and the reason of each finding in a file of another language."""
    pattern, reason = CODE[kind]
    return [
        (number, reason) for number, line in enumerate(source.split("\n"), 1)
        if pattern.search(re.sub(r"(^|\s)(#|//).*", "", line)) and "text:" not in line
    ]


def main(roots):
    count = 0
    for root in roots:
        base = pathlib.Path(root)
        for file in sorted(base.rglob("*")) if base.is_dir() else [base]:
            if not file.is_file() or file.suffix not in [".swift", *CODE]:
                continue
            source = file.read_text(encoding="utf-8")
            found = check(file.as_posix(), source) if file.suffix == ".swift" else (
                check_code(file.suffix, source))
            for line, reason in found:
                print(f"{file}:{line}: {reason}")
                count += 1
    if count:
        print(f"{count} findings; see the head of Scripts/check-text.py")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
