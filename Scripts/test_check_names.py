import importlib.util
import pathlib
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("check_names", HERE / "check-names.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


class NameTests(unittest.TestCase):
    def test_vague_verbs_are_found(self):
        for name in ["note", "keepName", "takeBack", "tellAll", "settle", "bringOut", "putOff"]:
            for line in [f"func {name}(_ x: Int) {{", f"  package mutating func {name}<T>(", f"func `{name}`()"]:
                self.assertEqual([(n, f) for n, f, _ in check.findings(line)], [(1, name)], line)

    def test_other_names_pass(self):
        for line in [
            "func put(_ bytes: [UInt8], as key: String) {",
            "func record(note: Note) {", "func keeper() {", "func notify() {", "func holds() {", "func taken() {",
            "/// Calls func note(", 'let s = "func note("', "let note = { keep() }", "keep(key)",
        ]:
            self.assertEqual(check.findings(line), [], line)

    def test_lines_are_numbered(self):
        self.assertEqual(check.findings("a\n\nfunc take() {}\n"), [(3, "take", check.VERBS["take"])])

    def test_a_file_that_is_no_text_ends_the_check(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.swift"
            path.write_bytes(b"\xff\xfe\xff")
            self.assertEqual(check.main([path]), 2)
            path.write_text("func note() {}")
            self.assertEqual(check.main([folder]), 1)
            path.write_text("func record() {}")
            self.assertEqual(check.main([folder]), 0)


if __name__ == "__main__":
    unittest.main()
