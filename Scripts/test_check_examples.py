"""Tests of check-examples.py."""
import importlib.util
import pathlib
import unittest

_PATH = pathlib.Path(__file__).with_name("check-examples.py")
_SPEC = importlib.util.spec_from_file_location("check_examples", _PATH)
check = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check)


class BlockTests(unittest.TestCase):
    def test_only_blocks_without_a_reason_are_compiled(self):
        text = (
            "A\n```swift\nlet a = 1\n```\n<!-- not compiled: lines of a Package.swift -->\n"
            "```swift\nlet b = 2\n```\n<!-- not compiled: -->\n```swift\nlet c = 3\n```\n"
            "```console\n$ ferry sync\n```\n")
        self.assertEqual(check.blocks(text, "swift"), [(2, "let a = 1\n"), (10, "let c = 3\n")])
        self.assertEqual(check.blocks(text, "console"), [(13, "$ ferry sync\n")])

    def test_a_block_has_given_declarations_and_continues_another(self):
        text = (
            "<!-- given: struct A {\n  var b: Int\n} -->\n```swift\nlet a = 1\n```\n"
            "<!-- continued -->\n```swift\nlet b = a\n```\n")
        self.assertEqual(
            check.blocks(text, "swift"), [(4, "struct A {\n  var b: Int\n}\nlet a = 1\nlet b = a\n")])

    def test_declarations_are_outside_of_the_function(self):
        text = check.program(
            "import FerryShell\n@MainActor @Observable\nfinal class A {\n  func b() {}\n}\n"
            "extension A { var c: Int { 1 } }\nlet a = A()\n")
        top, body = text.split("@MainActor func example")
        self.assertIn("import FerryShell\n@MainActor @Observable\nfinal class A {\n  func b() {}\n}\n", top)
        self.assertIn("extension A { var c: Int { 1 } }\n", top)
        self.assertIn("let a = A()", body)
        self.assertNotIn("class", body)


class CommandTests(unittest.TestCase):
    HELP = {
        ("ferry",): "sync  Pull and push.\n  --[no-]json  JSON.",
        ("ferry", "sync"): "--watch  Stay in step.\n  --[no-]json  JSON.",
        ("ferry", "token", "list"): "--limit N",
        ("ferry", "token"): "list  Lists tokens.",
    }

    def faults(self, line):
        return [
            fault for words in check.commands(line)
            for fault in check.command_faults(words, lambda *words: self.HELP.get(words))]

    def test_existing_commands_and_options_have_no_fault(self):
        self.assertEqual(self.faults("$ ferry sync --watch --json && ferry token list --limit 3\nferry x\n"), [])
        self.assertEqual(self.faults("$ A=1 .build/debug/ferry sync \\\n  --no-json | head\n"), [])

    def test_absent_commands_and_options_are_faults(self):
        self.assertEqual(
            self.faults("$ ferry sink\n$ ferry sync --wach\n"),
            ["ferry has no command sink", "ferry sync has no option --wach"])


if __name__ == "__main__":
    unittest.main()
