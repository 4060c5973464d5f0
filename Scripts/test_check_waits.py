import importlib.util
import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("check_waits", HERE / "check-waits.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


class WaitTests(unittest.TestCase):
    def test_polls_are_found(self):
        for text in [
            "while x { await Task.yield() }",
            "while !ready {\n  try await Task.sleep(for: .milliseconds(5))\n}",
            "while try f({ $0 }) == 0 { usleep(5) }",
            "repeat {\n  n = try await count()\n} while await n < 3 && slept({ Thread.sleep(forTimeInterval: 1) })",
            "repeat { x = y(); await Task.yield() } while x < 3",
            "while true { while a { b() }; Thread.sleep(forTimeInterval: 1) }",
        ]:
            self.assertEqual(check.findings(text), [1], text)

    def test_only_the_loop_with_the_pause_is_found(self):
        text = "while let a = next() {\n  for b in a {\n    while !b { await Task.yield() }\n  }\n}"
        self.assertEqual(check.findings(text), [3])

    def test_other_loops_pass(self):
        for text in [
            "while let part = try await parts.next() { count += part }",
            "while !Task.isCancelled { await Task.yield() }",
            "while errno == EINTR {}",
            "// while x { await Task.yield() }",
            'let script = "while :; do sleep(1); done { }"',
            'let s = #"while x { sleep(1) }"#',
            'let s = """\n  while (x) { sleep(1) }\n  """',
            "while true { switch x { case .a: return Thread.sleep(forTimeInterval: d) } }",
            'try await eventually("it") { await Task.yield(); return ready }',
            "for _ in 0..<9 { await Task.yield() }",
            "x.repeat(3); wait(while: { true })",
            r'let s = """\n \\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\ ',
        ]:
            self.assertEqual(check.findings(text), [], text)

    def test_the_browsers_are_the_same_everywhere(self):
        browse = (HERE / "browse.py").read_text()
        names = re.findall(r'"([^"]+)"', re.search(r"^NAMES = \[(.*?)\]", browse, re.S | re.M)[1])
        swift = (HERE / "../Tests/TestSupport/HeadlessBrowser.swift").read_text()
        found = re.search(r"static let names = \[(.*?)\]", swift, re.S)[1]
        self.assertEqual(re.findall(r'"([^"]+)"', found), names)
        script = (HERE / "install-dependencies.sh").read_text()
        self.assertEqual(re.search(r"for name in (.*?); do", script)[1].split(), names)


if __name__ == "__main__":
    unittest.main()
