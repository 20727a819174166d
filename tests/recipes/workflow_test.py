"""The workflow of packaging/ci: it is a workflow, and the commands that it runs exist. No forge is needed for this."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

try:
    import yaml
except ImportError:
    yaml = None

ROOT = Path(os.environ["SOURCE"])
PACKAGING = ROOT / "packaging"


def version():
    return re.search(r'#define POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()).group(1)


@unittest.skipIf(yaml is None, "python3-yaml is not installed")
class Workflow(unittest.TestCase):
    def setUp(self):
        self.text = (PACKAGING / "ci/posenc.yml").read_text()
        self.workflow = yaml.safe_load(self.text)
        self.jobs = self.workflow["jobs"]

    def commands(self):
        return [step["run"] for job in self.jobs.values() for step in job["steps"] if "run" in step]

    def test_it_has_the_parts_of_a_workflow(self):
        self.assertIn(True, self.workflow)  # YAML 1.1 reads the key `on` as true
        self.assertEqual(set(self.workflow[True]), {"push", "pull_request"})
        for name, job in self.jobs.items():
            self.assertIn("runs-on", job, name)
            for step in job["steps"]:
                self.assertEqual(("run" in step) + ("uses" in step), 1, step)
            for needed in [job["needs"]] if "needs" in job else []:
                self.assertIn(needed, self.jobs)

    def test_both_architectures_and_every_system(self):
        matrix = self.jobs["test"]["strategy"]["matrix"]
        self.assertEqual(matrix["machine"], ["ubuntu-24.04", "ubuntu-24.04-arm"])
        self.assertEqual(matrix["system"], ["debian:12", "debian:13", "ubuntu:24.04"])

    def test_only_the_tag_is_published(self):
        self.assertIn("refs/tags/v", self.jobs["release"]["if"])
        self.assertEqual((self.jobs["release"]["needs"], self.jobs["publish"]["needs"]), ("test", "release"))
        writers = [name for name, job in self.jobs.items() if job.get("permissions", {}).get("contents") == "write"]
        self.assertEqual((self.workflow["permissions"], writers), ({"contents": "read"}, ["publish"]))

    def test_the_commands_exist(self):
        ours = set(re.findall(r"(?<![\w/])\./(\w+)", "\n".join(self.commands())))
        self.assertEqual(ours, {"test", "release"})
        self.assertTrue(os.access(ROOT / "test", os.X_OK))
        for command in self.commands():
            subprocess.run(["bash", "-n", "-c", command], check=True)
        for step in (step for job in self.jobs.values() for step in job["steps"] if "uses" in step):
            self.assertRegex(step["uses"], r"^actions/[a-z-]+@v\d+$")

    def test_the_tag_is_compared_with_the_version(self):
        command = next(step["run"] for step in self.jobs["release"]["steps"] if "version.h" in step.get("run", ""))

        def run(tag):
            return subprocess.run(["bash", "-c", command], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}).returncode
        self.assertEqual(run(f"v{version()}"), 0)
        self.assertNotEqual(run(f"v{version()}.1"), 0)
        self.assertNotEqual(run("v" + version().replace(".", "x")), 0)

    def test_its_files_are_where_release_puts_them(self):
        self.assertTrue(os.access(ROOT / "release", os.X_OK))
        self.assertIn("build/release-files", self.text)
        self.assertIn("build/release-files", (ROOT / "release").read_text())
        self.assertIn("SHA256SUMS", (ROOT / "release").read_text())
        self.assertIn("build/test-logs", (ROOT / "test").read_text())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
