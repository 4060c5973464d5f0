import importlib.util
import pathlib
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("check_errors", HERE / "check-errors.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


class ErrorTests(unittest.TestCase):
    def test_searched_and_compared_texts_are_found(self):
        for line, words in [
            ('if "\\(error)".contains("was refused") {', "was refused"),
            ('  failure.contains("NOT NULL constraint")', "NOT NULL constraint"),
            ('error.message.has("no such function: x")', "no such function: x"),
            ('guard text.begins(with: "Too many") else', "Too many"),
            ('if contains("too large", "exceed") {', "too large"),
            ('error.message == "too many rows"', "too many rows"),
            ('if context?.text != "while executing"', "while executing"),
        ]:
            self.assertEqual(check.findings(line), [(1, words)], line)

    def test_other_code_passes(self):
        for line in [
            'text.begins(with: "CREATE VIRTUAL")', 'name.has("utf-8")', 'text.has("-----BEGIN CERTIFICATE-----")',
            'lines.first { $0.contains("Fatal error") }', 'if keys.contains(key) { return "has no key" }',
            '/// Not `error.contains("was refused")`.', 'error.code == .busy',
            'precondition((0..<n).contains(i), "there is no such part")', 'place == "the value"',
        ]:
            self.assertEqual(check.findings(line), [], line)

    def test_a_reason_exempts_lines_to_the_next_blank_one(self):
        text = '// No code: curl has none.\na.contains("too large")\n\nb.contains("too large")'
        self.assertEqual(check.findings(text), [(4, "too large")])
        self.assertEqual(len(check.findings('// No code:\na.contains("too large")')), 1)

    def test_a_file_that_is_no_text_ends_the_check(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.swift"
            path.write_bytes(b"\xff\xfe\xff")
            self.assertEqual(check.main([path]), 2)
            path.write_text('a.contains("too large")')
            self.assertEqual(check.main([folder]), 1)
            path.write_text("a.isTooLarge")
            self.assertEqual(check.main([folder]), 0)


if __name__ == "__main__":
    unittest.main()
