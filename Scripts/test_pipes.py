import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These may end before they have read everything. The command before them then ends by SIGPIPE.
EARLY_END = re.compile(r"\|\s*(grep\s+-[a-zA-Z]*q|head\b)")


class PipeTests(unittest.TestCase):
    def test_no_script_fails_because_a_pipe_ends_early(self):
        scripts = [*ROOT.glob("Scripts/*.sh"), *ROOT.glob("Server/**/*.sh"), ROOT / ".ci/run"]
        strict = [path for path in scripts if "pipefail" in path.read_text()]
        self.assertGreater(len(strict), 5)
        found = [
            f"{path.relative_to(ROOT)}: {line.strip()}"
            for path in strict
            for line in path.read_text().splitlines()
            if EARLY_END.search(line) and "|| true" not in line
        ]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
