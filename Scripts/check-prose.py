#!/usr/bin/env python3
"""Checks the prose of Markdown files and of Swift doc comments (`///`).

Finds words that Ferry's documents avoid, and sentences of more than 40 words. Counts “that”, “its”
and “you” in each Markdown page, and finds pages beyond their budget. Code blocks and inline code are
left out, and tables have no sentences. Prints `file:line: finding`; exits with 1 if there is any
finding, with 2 if a file cannot be read.
"""

import argparse
import re
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple

MAX_WORDS = 40


class Budget(NamedTuple):
    """Uses of words in 1,000 words of a Markdown page: at most, at most, and at least."""

    that: float
    its: float
    you: float = 0


# Pages for users speak to the reader: README.md, and the files in these folders.
USER_PAGES = Budget(that=12, its=3, you=4)
USER_FOLDERS = ("Documentation", "*.docc")
# A list of words has no reader to speak to.
GLOSSARY = Budget(that=12, its=3)
# Pages for contributors.
OTHER_PAGES = Budget(that=12, its=5)
# A specification names its subjects, and speaks to nobody. The budget keeps it as it is.
SPECIFICATION = Budget(that=5, its=3)
# One sentence decides about the rates of a shorter page.
MIN_PAGE_WORDS = 100

# A pattern, and the words to write instead. Patterns prefer missing a case to a false finding.
AVOIDED = [
    (r"\banew\b", "again; from scratch"),
    (r"\bset(?:s|ting)?(?: \w+){0,2} back\b", "restored from a backup; rolled back"),
    (r"\bpark(?:s|ed|ing)?\b", "buffered"),
    (r"\b(?:keep|keeps|kept|keeping) back\b", "deferred; rejected locally"),
    (r"\brefus(?:e|es|ed|ing|al)\b[^.;:]{0,20}\bfor good\b", "rejected by the server; quarantined"),
    (r"\b(?:the|a|its|each|that|this|space's|new|former|no) floor\b(?!\()"
     r"|\bfloor of (?:a|the) space\b", "retention horizon"),
    (r"\brunning prints?\b|\b(?:history's|its|another|same) prints?\b"
     r"|\bprints? of (?:a|the|its|this|that) (?:history|server)\b", "history hash"),
    (r"\btell(?:s|ing)?\b|\btold\b", "notify, report, return, list"),
    (r"\bsay(?:s|ing)?\b|\bsaid\b", "report, return, state"),
    (r"\bmend(?:s|ed|ing)?\b", "repair"),
    (r"\b(?:give|gives|given|giving|gave) back\b", "re-upload; return; release"),
    (r"\b(?:has|have|had|they|two) met\b|\bunseen by\b", "concurrent; conflicting"),
    (r"\bwho(?:m)?ever\b", "the user, caller, device or server"),
    (r"\bsomebody\b|\bsomeone\b", "the user, caller, device or server"),
    (r"(?:^|\b(?:and|or|of|by|to|from|know|knows|see|sees|decides?|which|with|for|about|that) )"
     r"who\b(?![^?]*\?$)", "the user, caller, device or server"),
    (r"\bthe one (?:that|who|which)\b", "the noun itself"),
    (r"\b(?:take|takes|took|taking|taken) (?:the place of|(?:its|their|his|(?:the )?\w+'s?) place)\b",
     "replaces, overwrites"),
    (r"\bstands? twice\b", "is a duplicate"),
    (r"\b(?:stands?|stood|standing|lies|lie|lying) in\b", "is in; contains, has"),
    (r"\bhead board\b", "fan-out"),
    (r"\bdesks?\b", "publisher"),
    (r"\bimpatien(?:t|ce)\b", "deadline"),
    (r"\bseals?\b", "checksum; authentication tag"),
    (r"^(?-i:What)\b(?![^?]*\?$)", "a noun as the subject"),
]
AVOIDED = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in AVOIDED]


class Block(NamedTuple):
    """A paragraph, a heading, an item of a list or a row of a table, as numbered lines."""

    lines: list[tuple[int, str]]
    is_table: bool


class Finding(NamedTuple):
    line: int
    kind: str
    message: str


class Sentence(NamedTuple):
    start: int
    text: str


FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)])\s+")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+")
SYMBOL_LINE = re.compile(r"^\s*[-=*_:|]{3,}\s*$")


def blocks(lines: list[tuple[int, str]]) -> Iterator[Block]:
    """The prose of Markdown lines, without code blocks and comments."""
    pending: list[tuple[int, str]] = []
    fence = None
    in_comment = in_list = False
    after_blank = True
    for number, raw in lines:
        line = raw.rstrip()
        if fence:
            fence = None if line.strip().startswith(fence) else fence
            continue
        if in_comment or line.lstrip().startswith("<!--"):
            in_comment = "-->" not in line
            continue
        opening = FENCE.match(line)
        is_code = line.startswith("    ") and after_blank and not in_list and not pending
        is_row = line.lstrip().startswith("|")
        starts = ITEM.match(line) or HEADING.match(line) or is_row
        if pending and (opening or starts or not line.strip() or SYMBOL_LINE.match(line)):
            yield Block(pending, False)
            pending = []
        if opening:
            fence = opening.group(1)
            continue
        if not line.strip():
            after_blank = True
            continue
        if is_code:
            continue
        if not line.startswith(" "):
            in_list = False
        after_blank = False
        if SYMBOL_LINE.match(line):
            continue
        if is_row:
            yield Block([(number, line)], True)
            continue
        in_list = in_list or bool(ITEM.match(line))
        text = HEADING.sub("", ITEM.sub("", line)).lstrip(" >")
        if HEADING.match(line):
            yield Block([(number, text)], False)
        else:
            pending.append((number, text))
    if pending:
        yield Block(pending, False)


def without_markup(text: str) -> str:
    """The text that a reader sees; inline code and addresses become the one word `Code`."""
    text = re.sub(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", "Code", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"<?https?://[^\s)>]+[^\s)>.,;:]>?", "Code", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>", "", text)
    return re.sub(r"\*+|(?<!\w)_+|_+(?!\w)", "", text)


ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|[A-Z])|§)\.$")
END = re.compile(r"[.!?…][)\]\"'”’]*\s+(?=[\"'“‘(\[]*[A-Z0-9])")


def sentences(text: str) -> Iterator[Sentence]:
    start = 0
    for end in END.finditer(text):
        if ABBREVIATION.search(text[: end.start() + 1]):
            continue
        yield Sentence(start, text[start : end.end()].strip())
        start = end.end()
    if text[start:].strip():
        yield Sentence(start, text[start:].strip())


def word_count(text: str) -> int:
    return sum(1 for word in text.split() if re.search(r"\w", word))


def check_block(block: Block, max_words: int) -> Iterator[Finding]:
    # Markup may go over the end of a line, so lines are joined by a character that markup keeps.
    joined = without_markup("\n".join(text for _, text in block.lines))
    numbers = [number for number, _ in block.lines]
    breaks = [i for i, character in enumerate(joined) if character == "\n"]

    def line_at(offset: int) -> int:
        return numbers[min(bisect_right(breaks, offset), len(numbers) - 1)]

    text = joined.replace("\n", " ")
    cells = re.finditer(r"[^|]+", text) if block.is_table else [re.match(r".*", text)]
    for cell in cells:
        for sentence in sentences(cell.group()):
            offset = cell.start() + text[cell.start() + sentence.start :].find(sentence.text)
            offset += sentence.start
            for pattern, instead in AVOIDED:
                for match in pattern.finditer(sentence.text):
                    found = match.group().strip()
                    message = f"avoid “{found}”: {instead}"
                    yield Finding(line_at(offset + match.start()), "words", message)
            count = word_count(sentence.text)
            if count > max_words and not block.is_table:
                beginning = " ".join(sentence.text.split()[:6])
                message = f"a sentence of {count} words (at most {max_words}): “{beginning} …”"
                yield Finding(line_at(offset), "length", message)


def budget_of(path: Path) -> Budget:
    if path.name == "SPEC.md":
        return SPECIFICATION
    if path.name == "glossary.md":
        return GLOSSARY
    folder = path.absolute().parent
    if path.name == "README.md" or any(folder.match(pattern) for pattern in USER_FOLDERS):
        return USER_PAGES
    return OTHER_PAGES


def check_page(path: Path, page: list[Block]) -> Iterator[Finding]:
    """Rates of a whole Markdown page. “That” counts in all its uses, and “your” as “you”."""
    texts = (without_markup("\n".join(text for _, text in block.lines)) for block in page)
    words = Counter(word for text in texts for word in re.findall(r"[a-z']+", text.lower()))
    if words.total() < MIN_PAGE_WORDS:
        return
    budget = budget_of(path)

    def rate(*forms: str) -> float:
        return round(1000 * sum(words[form] for form in forms) / words.total(), 1)

    def finding(word: str, measured: float, bound: str, instead: str) -> Finding:
        message = f"“{word}” {measured} times in 1,000 words ({bound}): {instead}"
        return Finding(1, "rates", message)

    that, its, you = rate("that"), rate("its"), rate("you", "your")
    if that > budget.that:
        yield finding("that", that, f"at most {budget.that}", "use participles, prepositions, nouns")
    if its > budget.its:
        yield finding("its", its, f"at most {budget.its}", "name the owner, or drop the possessive")
    if you < budget.you:
        yield finding("you", you, f"at least {budget.you}", "speak to the reader: “run …”, “you …”")


def prose_of(name: str, text: str) -> Iterator[list[tuple[int, str]]]:
    """The Markdown of a file: all of it, or of Swift each doc comment."""
    lines = list(enumerate(text.splitlines(), 1))
    if not name.endswith(".swift"):
        yield lines
        return
    comment: list[tuple[int, str]] = []
    for number, line in lines:
        match = re.match(r"\s*///(?!/) ?(.*)$", line)
        if match:
            comment.append((number, match.group(1)))
        elif comment:
            yield comment
            comment = []
    if comment:
        yield comment


def check(path: Path, text: str, max_words: int = MAX_WORDS) -> list[Finding]:
    found = []
    for prose in prose_of(path.name, text):
        page = list(blocks(prose))
        found += [finding for block in page for finding in check_block(block, max_words)]
        if path.suffix == ".md":
            found += check_page(path, page)
    return sorted(found)


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            inside = [p for p in path.rglob("*") if p.suffix in (".md", ".swift") and p.is_file()]
            hidden = lambda p: any(part.startswith(".") for part in p.relative_to(path).parts)
            yield from sorted(p for p in inside if not hidden(p))
        else:
            yield path


def print_counts(counts: list[tuple[Path, Counter]]) -> None:
    """Findings of each file, then of each folder with all that is below it."""
    folders: dict[Path, Counter] = {}
    for path, count in counts:
        for folder in path.parents:
            folders.setdefault(folder, Counter()).update(count)
    shown = [(str(path), count) for path, count in counts if count.total()]
    shown += [(f"{path}/", folders[path]) for path in sorted(folders) if folders[path].total()]
    kinds = ("words", "length", "rates")
    print(" ".join(f"{title:>6}" for title in ("total", *kinds)))
    for name, count in shown:
        numbers = (count.total(), *(count[kind] for kind in kinds))
        print(" ".join(f"{number:6}" for number in numbers) + f"  {name}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="+", help="Markdown and Swift files, or folders of them")
    parser.add_argument("--list", action="store_true",
                        help="count the findings of each file and folder, and exit with 0")
    parser.add_argument("--max-words", type=int, default=MAX_WORDS, metavar="N",
                        help="words in a sentence at most; %(default)s")
    options = parser.parse_args(arguments)
    counts = []
    for path in files(options.paths):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: cannot be read: {error}", file=sys.stderr)
            return 2
        findings = check(path, text, options.max_words)
        counts.append((path, Counter(finding.kind for finding in findings)))
        if not options.list:
            for finding in findings:
                print(f"{path}:{finding.line}: {finding.message}")
    if options.list:
        print_counts(counts)
        return 0
    return 1 if any(count for _, count in counts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
