"""Tests of check-manifest.py."""
import importlib.util
import pathlib
import unittest

_PATH = pathlib.Path(__file__).with_name("check-manifest.py")
_SPEC = importlib.util.spec_from_file_location("check_manifest", _PATH)
check = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check)


def target(name, kind, *needs):
    entries = [{"byName": [need, None]} for need in needs]
    return {"name": name, "type": kind, "path": name, "dependencies": entries}


class ManifestTests(unittest.TestCase):
    def faults(self, targets, imports, exports={}):
        return check.faults(
            {"targets": targets}, lambda folder: set(imports.get(folder, [])),
            lambda folder: set(exports.get(folder, [])))

    def test_a_complete_manifest_has_no_fault(self):
        targets = [target("A", "regular"), target("B", "regular", "A")]
        self.assertEqual(self.faults(targets, {"B": ["A", "Foundation"]}), [])

    def test_a_missing_and_a_needless_name_are_faults(self):
        targets = [target("A", "regular"), target("B", "regular"), target("C", "regular", "A")]
        self.assertEqual(
            self.faults(targets, {"C": ["B"]}),
            ["C imports B and does not name it", "C names A and does not import it"])

    def test_only_tests_of_processes_may_name_programs_without_an_import(self):
        targets = [
            target("P", "executable"), target("PairTests", "test", "P"), target("T", "test", "P"),
            target("L", "regular", "P")]
        self.assertEqual(
            self.faults(targets, {}),
            ["T names P and does not import it", "L names P and does not import it"])

    def test_modules_that_an_imported_one_exports_again_are_named(self):
        targets = [
            target("A", "regular"), target("B", "regular", "A"), target("U", "regular", "B"),
            target("App", "executable", "U"), target("Other", "executable", "U", "B", "A")]
        imports = {"B": ["A"], "U": ["B"], "App": ["U"], "Other": ["U"]}
        exports = {"U": ["B"], "B": ["A"]}
        self.assertEqual(
            self.faults(targets, imports, exports),
            ["U imports A and does not name it", "App imports A and does not name it",
             "App imports B and does not name it"])

    def test_imports_are_found_with_attributes_and_indentation(self):
        text = "@testable import A\n@_exported import B\n#if x\n  import C\n#endif\n// import D\n"
        self.assertEqual(check.IMPORT.findall(text), ["A", "B", "C"])


if __name__ == "__main__":
    unittest.main()
