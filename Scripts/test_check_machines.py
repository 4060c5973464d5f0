import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("check_machines", HERE / "check-machines.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


def output(*arguments):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        return check.main([*map(str, arguments)]), printed.getvalue()


class MachineTests(unittest.TestCase):
    def test_each_branch_counts(self):
        for text, count in [
            ("if a { b() }", 1), ("guard let a else { return }", 1), ("for a in b where c {", 1),
            ("while true {", 1), ("let a = b ? c : d", 1), ("return a ?? b ?? c", 2),
            ("switch a {\n  case .b: c()\n  case .d(let e),\n    .f(let e): g(e)\n  default: h()\n}", 2),
            ("if a, b {\n} else if c {\n}", 2), ("if case .a = b {}", 1),
        ]:
            self.assertEqual(check.branches(text), count, text)

    def test_other_code_has_none(self):
        for text in [
            "enum A {\n  case b\n  case c(Int)\n  case d = \"e\"\n  case f, g\n}", "/// if a, for b", "let a = \"if b ?? c\"",
            "func f(for a: Int) {}", "a.first(where: { $0 })", "var a: Int?", 'let a = """\n  if b\n  """',
        ]:
            self.assertEqual(check.branches(text), 0, text)

    def test_a_machine_neither_awaits_nor_knows_a_database(self):
        self.assertTrue(check.is_machine("import FerryProtocol\n/// No ReplicaFile, no await.\nstruct A {}"))
        for text in [
            "import FerrySQLite", "import FerryPersistence", "package import FerryNetworking", "func a() async {}",
            "let file: ReplicaFile", "let a: SQLiteStatement",
        ]:
            self.assertFalse(check.is_machine(text), text)

    def test_the_share_decides(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "A.swift").write_text("if a {}\nif b {}\nif c {}")
            (path / "B.swift").write_text("import FerrySQLite\nif a {}")
            code, printed = output(75, folder)
            self.assertEqual((code, printed), (0, "branches: machines 3, drivers 1, in machines 75.0 %\n"))
            self.assertEqual(output(75.1, folder)[0], 1)
            self.assertEqual(output(0, path / "none.swift")[0], 2)
            with self.assertRaises(SystemExit):
                check.main([])


if __name__ == "__main__":
    unittest.main()
