"""Tests of check-prose.py: python3 -B -m unittest discover -s Scripts"""

import contextlib
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("check-prose.py")
spec = importlib.util.spec_from_file_location("check_prose", SCRIPT)
check_prose = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_prose)

LONG = " ".join(["word"] * 41)


def found(text: str, path: str = "page.md") -> list[tuple[int, str]]:
    return [(finding.line, finding.kind) for finding in check_prose.check(Path(path), text)]


class AvoidedWords(unittest.TestCase):
    def test_each_pattern_finds_its_phrase(self):
        phrases = [
            "The pull begins anew.", "The server was set back.", "It sets the file back.",
            "The packet is parked.", "The row is kept back.",
            "The server refuses it for good.", "History below the floor is gone.",
            "It compares the print of a history.", "The answer tells the device.",
            "The schema says so.", "A repair mends the row.", "The device gives back the row.",
            "Two writes have met.", "Values unseen by the author lose.", "Whoever reads it, wins.",
            "If somebody writes, it wakes.", "It knows who reads.", "It is the one that waits.",
            "The row takes the place of another.", "A version takes the former's place.",
            "The key stands twice.", "The rule lies in the machine.", "The head board wakes.",
            "The desk answers.", "An impatient caller leaves.", "The seal is wrong.",
            "What fails is retried.", "Who reads it waits.",
        ]
        for phrase in phrases:
            with self.subTest(phrase):
                self.assertEqual(found(phrase), [(1, "words")])

    def test_ordinary_prose_has_no_findings(self):
        phrases = [
            "What is a space?", "A user who writes offline keeps working.",
            "The server rejects the operation.", "The handshake takes place at the start.",
            "The condition is met.", "It prints the table.", "Set a limit, and go back.",
            "The floor() of a quotient.", "Sealed content has no path.", "Errors are objects.",
            "The file lies beside the replica.", "He presented a desktop.",
        ]
        for phrase in phrases:
            with self.subTest(phrase):
                self.assertEqual(found(phrase), [])

    def test_code_is_left_out(self):
        self.assertEqual(found("Run `ferry say` or ``parked``.\n\n```\nWhat was told\n```\n"), [])
        self.assertEqual(found("Text.\n\n    $ ferry tell\n"), [])
        self.assertEqual(found("<!-- whoever -->\nText."), [])

    def test_a_finding_has_the_line_of_its_word(self):
        self.assertEqual(found("One line\nand a second one\nthat is anew."), [(3, "words")])
        self.assertEqual(found("It waits until it is set\nback."), [(1, "words")])
        self.assertEqual(found("A [link\nover lines](x.md) and\nwhoever."), [(3, "words")])

    def test_link_targets_are_no_prose(self):
        self.assertEqual(found("See [the page](anew.md) and https://x.org/anew."), [])

    def test_tables_have_words(self):
        self.assertEqual(found("| a | b |\n|---|---|\n| c | told |"), [(3, "words")])


class LongSentences(unittest.TestCase):
    def test_forty_words_are_allowed(self):
        self.assertEqual(found(" ".join(["word"] * 40) + "."), [])

    def test_forty_one_words_are_not(self):
        self.assertEqual(found(LONG + "."), [(1, "length")])

    def test_sentences_end_at_marks(self):
        half = " ".join(["word"] * 25)
        for text in [f"{half}. A {half}.", f"{half}? A {half}.", f"{half}. `code` {half}.",
                     f"{half} (word.) A {half}.", f"{half}.\nA {half}."]:
            with self.subTest(text):
                self.assertEqual(found(text), [])

    def test_abbreviations_and_numbers_do_not_end_them(self):
        half = " ".join(["word"] * 20)
        for mark in ["e.g. A", "i.e. A", "3.5", "RFC 9.1"]:
            with self.subTest(mark):
                self.assertEqual(found(f"{half} {mark} {half}."), [(1, "length")])

    def test_items_headings_and_paragraphs_are_apart(self):
        half = " ".join(["word"] * 25)
        self.assertEqual(found(f"- {half}\n- {half}\n"), [])
        self.assertEqual(found(f"1. {half}\n2. {half}\n"), [])
        self.assertEqual(found(f"# {half}\n{half}\n"), [])
        self.assertEqual(found(f"{half}\n\n{half}\n"), [])

    def test_an_item_goes_on_over_lines(self):
        half = " ".join(["word"] * 25)
        self.assertEqual(found(f"text\n\n- {half}\n  {half}\n"), [(3, "length")])

    def test_tables_and_code_blocks_are_skipped(self):
        self.assertEqual(found(f"| {LONG} |\n"), [])
        self.assertEqual(found(f"~~~\n{LONG}\n~~~\n"), [])

    def test_inline_code_counts_as_one_word(self):
        self.assertEqual(found(f"`{LONG}` is code."), [])


class Rates(unittest.TestCase):
    """Pages of 1,000 words, so that a rate is a count."""

    def rates(self, path: str, **counts: int) -> list[str]:
        words = [word for word, count in counts.items() for _ in range(count)]
        words += ["word"] * (1000 - len(words))
        lines = [" ".join(words[start : start + 20]) + ".\n" for start in range(0, 1000, 20)]
        findings = check_prose.check(Path(path), "\n".join(lines))
        self.assertTrue(all(finding[:2] == (1, "rates") for finding in findings), findings)
        return [finding.message.split(":")[0] for finding in findings]

    def test_a_page_for_users_speaks_to_the_reader(self):
        for path in ["README.md", "Documentation/a.md", "Examples/A/README.md", "A/B.docc/C.md"]:
            with self.subTest(path):
                self.assertEqual(self.rates(path, that=12, its=3, you=3, your=1), [])
                self.assertEqual(self.rates(path, that=13, its=4, you=3), [
                    "“its” 4.0 times in 1,000 words (at most 3)",
                    "“that” 13.0 times in 1,000 words (at most 12)",
                    "“you” 3.0 times in 1,000 words (at least 4)"])

    def test_pages_for_contributors_need_no_reader(self):
        self.assertEqual(self.rates("DECISIONS.md", that=12, its=5), [])
        self.assertEqual(self.rates("DECISIONS.md", its=6), [
            "“its” 6.0 times in 1,000 words (at most 5)"])

    def test_glossaries_and_specifications_have_budgets_of_their_own(self):
        self.assertEqual(self.rates("Documentation/glossary.md", that=12, its=3), [])
        self.assertEqual(len(self.rates("Documentation/glossary.md", its=4)), 1)
        self.assertEqual(self.rates("Protocol/SPEC.md", that=5, its=3), [])
        self.assertEqual(len(self.rates("Protocol/SPEC.md", that=6, its=4)), 2)

    def test_capitals_and_tables_count_and_code_does_not(self):
        row = "| " + " ".join(["That"] * 2 + ["word"] * 98) + " |\n"
        self.assertEqual(found(row, "DECISIONS.md"), [(1, "rates")])
        code = " ".join(["`that its`"] * 50 + ["word"] * 50) + ".\n\n```\nthat its\n```\n"
        self.assertEqual(check_prose.check(Path("DECISIONS.md"), code, 200), [])

    def test_short_pages_are_not_measured(self):
        self.assertEqual(found("It does that.\n", "README.md"), [])

    def test_comments_of_swift_are_not_measured(self):
        text = "".join(f"/// It reads that and its {number}.\n///\n" for number in range(100))
        self.assertEqual(found(text, "Documentation/a.swift"), [])


class SwiftFiles(unittest.TestCase):
    def test_only_doc_comments_are_read(self):
        text = 'let told = "anew"  // told\n/// Tells it.\nfunc f() {}\n//// told\n'
        self.assertEqual(found(text, "a.swift"), [(2, "words")])

    def test_comments_of_two_declarations_are_apart(self):
        half = "/// " + " ".join(["word"] * 25)
        self.assertEqual(found(f"{half}\nlet a = 1\n{half}\nlet b = 1\n", "a.swift"), [])
        self.assertEqual(found(f"  {half}\n  {half}\nlet b = 1\n", "a.swift"), [(1, "length")])

    def test_examples_and_symbols_are_left_out(self):
        text = "/// Uses ``parked``.\n///\n/// ```swift\n/// tell(anew)\n/// ```\nlet a = 1\n"
        self.assertEqual(found(text, "a.swift"), [])


class Command(unittest.TestCase):
    def run_on(self, *arguments: str) -> tuple[int, str]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            status = check_prose.main(list(arguments))
        return status, output.getvalue()

    def test_findings_are_printed_with_their_place(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text("Fine.\nThis is anew.\n")
            self.assertEqual(
                self.run_on(str(page)),
                (1, f"{page}:2: avoid “anew”: again; from scratch\n"))

    def test_clean_files_print_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "page.md").write_text("Fine.\n")
            self.assertEqual(self.run_on(folder), (0, ""))

    def test_a_missing_file_is_an_error(self):
        self.assertEqual(self.run_on("/nonexistent/page.md")[0], 2)

    def test_the_list_counts_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "sub").mkdir()
            Path(folder, "page.md").write_text("anew\n")
            Path(folder, "sub", "a.swift").write_text(f"/// {LONG}\nlet a = 1\n")
            status, output = self.run_on("--list", folder)
            self.assertEqual(status, 0)
            rows = [line.split() for line in output.splitlines()]
            self.assertIn(["1", "1", "0", "0", f"{folder}/page.md"], rows)
            self.assertIn(["1", "0", "1", "0", f"{folder}/sub/"], rows)
            self.assertIn(["2", "1", "1", "0", f"{folder}/"], rows)


if __name__ == "__main__":
    unittest.main()
