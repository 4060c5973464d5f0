"""Every attack is named in SPEC.md §24 with its promise, and every attack that is named there exists."""
import ast
import pathlib
import re
import unittest

_ROOT = pathlib.Path(__file__).parent.parent
_ROW = re.compile(r"^\| (.*) \| `Tests/Attack/(\w+)\.py: (\w+)` \|$", re.MULTILINE)


def attacks():
    """The attacks of all topics, with the first lines of their docstrings."""
    found = {}
    for path in sorted((_ROOT / "Tests/Attack").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(
                    getattr(mark, "id", "") == "attack" for mark in node.decorator_list):
                promise = (ast.get_docstring(node) or "").splitlines()
                found[path.stem, node.name] = promise[0].rstrip(".") if promise else ""
    return found


class AttackTests(unittest.TestCase):
    def test_the_specification_names_each_attack_with_its_promise(self):
        text = (_ROOT / "Protocol/SPEC.md").read_text()
        named = {(topic, name): promise for promise, topic, name in _ROW.findall(text)}
        self.assertEqual(named, attacks())

    def test_every_topic_runs_and_states_its_promise(self):
        source = (_ROOT / "Tests/Attack/run.py").read_text()
        topics = ast.literal_eval(re.search(r"^TOPICS = (\(.*?\))$", source, re.MULTILINE)[1])
        self.assertEqual(set(topics), {topic for topic, _ in attacks()})
        for topic in topics:
            tree = ast.parse((_ROOT / f"Tests/Attack/{topic}.py").read_text())
            self.assertTrue(ast.get_docstring(tree), f"{topic}.py begins with its promise")


if __name__ == "__main__":
    unittest.main()
