import os
import pathlib
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).with_name("run-tests.sh")


class RunTestsTests(unittest.TestCase):
    def run_with(self, *command, **variables):
        return subprocess.run(
            [SCRIPT, *command], env={"PATH": os.environ["PATH"], "TMPDIR": "/tmp", **variables},
            capture_output=True, text=True, timeout=60)

    def test_settings_of_the_user_do_not_reach_the_tests(self):
        given = dict(
            FERRY_TOKEN="t", FERRY_TEST_BROWSER="b", FERRY_OPTIMISED="1", PGSSLMODE="require",
            PGPASSFILE="/p", http_proxy="p", HTTPS_PROXY="p", LC_ALL="C", LANG="C", TZ="Asia/Kathmandu",
            XDG_STATE_HOME="/s", AWS_PROFILE="a", OTEL_TRACES_SAMPLER="o", HOME="/h")
        lines = self.run_with("env", **given).stdout.splitlines()
        found = dict(line.split("=", 1) for line in lines)
        self.assertFalse(found.pop("PGPASSFILE").startswith("/p"))
        for name in ["PATH", "PWD", "SHLVL", "_", "OLDPWD"]:
            found.pop(name, None)
        self.assertEqual(found, dict(
            FERRY_TEST_BROWSER="b", FERRY_OPTIMISED="1", LANG="C.UTF-8", TZ="UTC", HOME="/h",
            TMPDIR="/tmp"))

    def test_failures_are_repeated_and_the_status_stays(self):
        found = self.run_with("sh", "-c", "echo '✘ Test x failed'; echo more; exit 3")
        self.assertEqual(found.returncode, 3)
        self.assertIn("These tests failed:\n✘ Test x failed", found.stdout)


if __name__ == "__main__":
    unittest.main()
