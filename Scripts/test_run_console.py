"""Tests of run-console.py."""
import importlib.util
import pathlib
import tempfile
import unittest

_PATH = pathlib.Path(__file__).with_name("run-console.py")
_SPEC = importlib.util.spec_from_file_location("run_console", _PATH)
console = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(console)


class BlockTests(unittest.TestCase):
    def test_a_block_has_commands_their_output_and_what_it_takes_for_granted(self):
        block, = console.blocks(
            "A\n<!-- given: cd a\nb 'c\nd' -->\n```console\n$ one \\\n  more\nshown\n$ two \"x\ny\"\n```\n")
        self.assertEqual([command.text for command in block.given], ["cd a", "b 'c\nd'"])
        self.assertEqual([command.text for command in block.commands], ["one \\\n  more", "two \"x\ny\""])
        self.assertEqual([command.shown for command in block.commands], [["shown"], []])
        self.assertEqual([command.line for command in block.commands], [6, 9])

    def test_a_block_is_left_out_with_a_reason_only(self):
        left_out, run = console.blocks(
            "<!-- not run: it needs docker -->\n```console\n$ a\n```\n```console\n$ b\n```\n")
        self.assertEqual((left_out.reason, run.reason), ("it needs docker", None))
        with self.assertRaisesRegex(console.Fault, "reason"):
            console.blocks("<!-- not run: no -->\n```console\n$ a\n```\n")

    def test_blocks_that_would_not_be_run_are_faults(self):
        for text in ("```sh\nferry sync\n```\n", "```console\nferry sync\n```\n"):
            with self.assertRaises(console.Fault):
                console.blocks(text)

    def test_a_block_is_a_file(self):
        block, = console.blocks("<!-- file: a/b.json -->\n```json\n{}\n```\n")
        self.assertEqual(block.file, ("a/b.json", "{}\n"))

    def test_servers_and_watches_run_until_the_end(self):
        for text, expected in (
                ("ferryd serve", True), ("A=b ferryd serve --data x", True), ("ferry sync --watch", True),
                ("ferry push   # or sync --watch", False), ("ferryd space create a", False),
                ("ferry sync && ferry pull --watch", False)):
            self.assertEqual(bool(console.ENDLESS.match(text)), expected, text)


class OutputTests(unittest.TestCase):
    def test_only_variable_parts_may_differ(self):
        for shown, real, expected in (
                (["a 2026-11-22T17:36:45.443Z b"], ["a 2027-01-01T00:00:00.000Z b"], True),
                (["token 60981520b5374a8c"], ["token 2cf5636a56e49d00"], True),
                (["2 items, 2.8 MiB"], ["2 items, 900 B"], True),
                (["http://127.0.0.1:8080/a"], ["http://127.0.0.1:29512/a"], True),
                (["id  name", "──  ───"], ["id    name", "────  ───"], True),
                (["1 pushed"], ["2 pushed"], False), (["7911 pushed"], ["7,911 pushed"], False),
                (["decided"], ["deadbeef"], False),
                (["a"], ["a", "b"], False), (["a", "…"], ["a", "b", "c"], True), (["…", "c"], ["a", "b"], False),
                (["in …, open"], ["in /tmp/x, open"], True), (["in …, open"], ["in /tmp/x, closed"], False)):
            self.assertEqual(console.matches(shown, real), expected, (shown, real))


class PageTests(unittest.TestCase):
    def _run(self, text):
        with tempfile.TemporaryDirectory(dir=console.ROOT / "Scripts") as folder:
            path = pathlib.Path(folder, "page.md")
            path.write_text(text, encoding="utf-8")
            return console.run_page(path, "/nowhere", console.Ports())

    def test_one_shell_runs_a_page(self):
        text = "```console\n$ export A=b; cd /\n```\n```console\n$ echo $A $PWD\nb /\n$ cat new.txt\nhello\n```\n"
        count, left_out, faults = self._run(text)
        self.assertEqual(left_out, [])
        self.assertEqual((count, faults), (3, []))

    def test_other_output_and_failures_are_faults(self):
        for block, reason in (
                ("$ echo a\nb\n", "the page shows other lines; the output is:\n    a"),
                ("$ false\n", "exit 1"), ("$ no-such-program\n", "exit 127")):
            _, _, faults = self._run(f"```console\n{block}```\n")
            self.assertEqual(len(faults), 1)
            self.assertIn(reason, faults[0])

    def test_a_message_below_a_command_permits_a_failure(self):
        message = "$ echo 'ferry: 1 conflict'; (exit 4)\nferry: 1 conflict\n"
        self.assertEqual(self._run(f"```console\n{message}```\n")[2], [])

    def test_a_shell_that_ends_is_a_fault(self):
        _, _, faults = self._run("```console\n$ exit 3\n```\n")
        self.assertIn("the page's shell has ended", faults[0])


if __name__ == "__main__":
    unittest.main()
