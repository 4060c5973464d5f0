"""Tests of check-text.py: python3 -B -m unittest discover -s Scripts"""

import contextlib
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("check-text.py")
spec = importlib.util.spec_from_file_location("check_text", SCRIPT)
check_text = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_text)


def lines(source: str, path: str = "Server/Mirror/MirrorSQL.swift") -> list[int]:
    return [line for line, _ in check_text.check(path, source)]


class FormerMistakes(unittest.TestCase):
    """Both let the administrator of one space run any SQL."""

    def test_names_quoted_by_characters_are_found(self):
        source = '''
  static func quoted(_ name: String) -> String {
    "\\"" + name.split(separator: "\\"", omittingEmptySubsequences: false).joined(separator: "\\"\\"")
      + "\\""
  }
'''
        self.assertIn(3, lines(source))
        self.assertIn(3, lines(source, "Client/Anything/Else.swift"))

    def test_a_default_quoted_by_characters_is_found(self):
        source = '''
    case .text(let text):
      literal =
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
        + "'"
'''
        self.assertIn(4, lines(source, "Server/Mirror/MirrorFile.swift"))
        self.assertIn(4, lines(source, "Client/Anything/Else.swift"))

    def test_a_name_for_a_shell_quoted_by_characters_is_found(self):
        source = """
    "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\\\''") + "'"
"""
        self.assertEqual(lines(source, "Sources/CommandLine/BuiltInCommands.swift"), [2])


class SQL(unittest.TestCase):
    def found(self, code):
        return len(lines(code, "Client/Some/File.swift"))

    def test_an_interpolation_between_quotes_is_found(self):
        self.assertEqual(self.found(r'''try file.query("SELECT 1 FROM t WHERE name = '\(name)'")'''), 1)
        self.assertEqual(self.found(r'''let sql = "DROP TABLE \"\(table)\""'''), 1)
        self.assertEqual(self.found('let sql = """\n  SELECT * FROM "\\(table)"\n  """'), 1)

    def test_a_name_or_text_without_quotes_is_found(self):
        self.assertEqual(self.found(r'let sql = "DELETE FROM \(table.name) WHERE id = ?"'), 1)
        self.assertEqual(self.found(r'let sql = "UPDATE t SET \(column.name.text) = 1"'), 1)

    def test_quoted_names_constants_and_integers_pass(self):
        self.assertEqual(self.found(r'let sql = "DELETE FROM \(quoted(table.name)) WHERE id = ?"'), 0)
        self.assertEqual(self.found(r'let sql = "SELECT \(Self.columns) FROM \(Usage.table)"'), 0)
        self.assertEqual(self.found(r'let sql = "SELECT 1 FROM t LIMIT \(limit)"'), 0)
        self.assertEqual(self.found(r'let sql = "SELECT \(names.map { quoted($0) }.joined()) FROM t"'), 0)

    def test_a_script_with_names_is_found(self):
        self.assertEqual(self.found(r'try file.execute("DROP TABLE \(quoted(name))")'), 1)
        self.assertEqual(self.found(r'try file.execute(single: "DROP TABLE \(quoted(name))")'), 0)
        self.assertEqual(self.found('try file.execute(\n  """\n  DROP TABLE \\(rest)\n  """)'), 1)

    def test_interpolations_in_interpolations_are_read(self):
        code = r'let sql = "SELECT \(list.map { "(\($0))" }.joined(separator: ")")) FROM \(a.name)"'
        self.assertEqual(self.found(code), 1)

    def test_comments_and_messages_pass(self):
        self.assertEqual(self.found(r'''// "SELECT '\(name)' FROM t"'''), 0)
        self.assertEqual(self.found(r'''throw Fault("there is no table \(table.name)")'''), 0)


class Characters(unittest.TestCase):
    def test_each_function_of_characters_is_found_in_the_product(self):
        for call in [
            'split(separator: "/")', 'split(whereSeparator: \\.isWhitespace)', 'hasPrefix("-")', 'hasSuffix(".x")',
            'components(separatedBy: "/")', 'contains("..")', 'firstIndex(of: ":")', 'replacing("a", with: "b")',
            "lowercased()", 'range(of: "x")', "trimmingCharacters(in: .whitespaces)",
        ]:
            self.assertEqual(lines(f"let parts = text.{call}"), [1], call)
            self.assertEqual(lines(f"let parts = text.{call}", "Sources/Proving/Else.swift"), [], call)

    def test_closures_over_characters_and_classes_of_all_scripts_are_found(self):
        for code in [
            'text.prefix { $0 != ";" }', 'text.drop(while: { $0 == " " })', 'text.filter { $0 != "\\t" }',
            'text.allSatisfy(\\.isWhitespace)', 'text.last == "\\n"', 'text.split(',
            'text.hasPrefix("bytes=")', "host.lowercased().utf8", '["INT", "CHAR"].contains(where: type.contains)',
            r"text.wholeMatch(of: /[+-]?\d+/)", "text.firstMatch(of: /<title[^>]*>/)",
        ]:
            self.assertEqual(lines(f"let a = {code}"), [1], code)
        for code in [
            'text.utf8.prefix { $0 != 0x3B }', 'text.until(";")', "kind.rawValue.uppercased()",
            "UUID().uuidString.lowercased()", "text.wholeMatch(of: /[0-9]+/)",
            r"text.wholeMatch(of: /\s*/.matchingSemantics(.unicodeScalar))", "values.filter { $0 != 7 }",
        ]:
            self.assertEqual(lines(f"let a = {code}"), [], code)

    def test_functions_of_bytes_pass(self):
        for code in ['text.utf8.split(separator: 0x2F)', 'text.parts(at: "/")', 'text.begins(with: "-")']:
            self.assertEqual(lines(f"let parts = {code}"), [], code)

    def test_a_reason_at_the_line_or_before_it_passes(self):
        self.assertEqual(lines('let a = b.lowercased()  // text: a word of this program'), [])
        self.assertEqual(lines('// text: a word of this program\nlet a = b.lowercased()'), [])
        self.assertEqual(lines('// text:\nlet a = b.lowercased()'), [2])


class OtherLanguages(unittest.TestCase):
    def test_text_that_becomes_code_is_found(self):
        for kind, found, passed in [
            (".sh", "eval \"$command\"", "evaluate \"$command\""),
            (".sh", "psql -c \"DROP TABLE $name\"", "psql -f schema.sql"),
            (".sh", "rm -r $folder", "rm -r \"$folder\""),
            (".py", "run(line, shell=True)", "run([line])"),  # text: a sample
            (".py", "cursor.execute(f\"DROP TABLE {name}\")", "cursor.execute(sql, (name,))"),
            (".js", "row.innerHTML = name", "row.textContent = name"),
            (".c", "system(line);", "filesystem(line);"),
        ]:
            self.assertEqual([line for line, _ in check_text.check_code(kind, found)], [1], found)
            self.assertEqual(check_text.check_code(kind, passed), [], passed)


class Programs(unittest.TestCase):
    def test_main_names_the_place_of_each_finding(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "A.swift")
            file.write_text("\nlet sql = \"DROP TABLE '\\(name)'\"\n", encoding="utf-8")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(check_text.main([folder]), 1)
            self.assertIn(f"{file}:2: ", output.getvalue())
            file.write_text("let sql = \"DROP TABLE t\"\n", encoding="utf-8")
            self.assertEqual(check_text.main([folder]), 0)

    def test_folders_with_exceptions_exist(self):
        root = SCRIPT.parent.parent
        for place in [*check_text.OWN_SQL, *check_text.OWN_TEXT, *check_text.QUOTING]:
            self.assertTrue(root.joinpath(place).exists(), place)


if __name__ == "__main__":
    unittest.main()
