"""The recipes of packaging/ fit the tree: versions, options of CMake, dependencies, and files that they name.

Neither vcpkg nor conda is needed for this: what can be read is read.
"""

import json
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
NEEDS_YAML = unittest.skipIf(yaml is None, "python3-yaml is not installed")


def version():
    return re.search(r'#define POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()).group(1)


def options_of_cmake():
    """Every option and cached setting of ours that a user may pass."""
    found = set()
    for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"), *(ROOT / "tests").rglob("CMakeLists.txt")]:
        found |= set(re.findall(r"(?:option|set)\((POSENC_\w+)", path.read_text(encoding="utf-8")))
    return found


def options_in(text):
    return set(re.findall(r"(?:-D|\b)(POSENC_[A-Z_]+)\b", text))


def dependencies():
    """Packages that CMake looks for: of the library, and of the program."""
    library = (ROOT / "cmake/dependencies.cmake").read_text()
    program = (ROOT / "cli/CMakeLists.txt").read_text()
    names = {"fmt": r"find_package\(fmt", "zlib": r"find_package\(ZLIB", "rapidjson": r"rapidjson/", "utfcpp": r"utf8/core.h",
             "tbb": r"find_package\(TBB", "highway": r"find_package\(hwy", "cli11": r"find_package\(CLI11",
             "sqlite3": r"sqlite3>=", "libzip": r"libzip>="}
    looked_for = {name: text for name, pattern in names.items() for text in (library, program) if re.search(pattern, text)}
    # a package that this test does not know is one that the recipes lack
    known = {"fmt", "ZLIB", "TBB", "hwy", "PkgConfig", "CLI11", "Threads"}
    unknown = set(re.findall(r"find_package\((\w+)", library + program)) - known
    return {name for name, text in looked_for.items() if text is library}, \
        {name for name, text in looked_for.items() if text is program}, unknown


class Vcpkg(unittest.TestCase):
    port = json.loads((PACKAGING / "vcpkg/vcpkg.json").read_text())
    portfile = (PACKAGING / "vcpkg/portfile.cmake").read_text()

    def test_version(self):
        self.assertEqual(self.port["version"], version())

    def test_packages_of_the_guide(self):
        page = (ROOT / "docs/guide/embedding.md").read_text(encoding="utf-8")
        packages = re.search(r"^apt install (.*)$", page, re.MULTILINE).group(1).split()
        known = set(re.findall(r"=([a-z0-9-]+)", (ROOT / "cmake/setup.sh").read_text(encoding="utf-8")))
        self.assertEqual(set(packages) - known, set(), "./run does not install these")
        library, _, _ = dependencies()
        names = {"highway": "hwy", "zlib": "zlib1g"}
        wanted = {f"{name}-dev".removeprefix("lib") for name in (names.get(one, one) for one in library)}
        self.assertEqual({one.removeprefix("lib") for one in packages}, wanted)

    def test_options_exist(self):
        used = options_in(self.portfile)
        self.assertGreater(len(used), 5)
        self.assertEqual(used - options_of_cmake(), set())

    def test_features_are_those_of_the_port(self):
        block = re.search(r"FEATURES\n(.*?)\n\)", self.portfile, re.DOTALL).group(1)
        self.assertEqual({line.split()[0] for line in block.splitlines()}, set(self.port["features"]))

    def test_dependencies(self):
        library, program, unknown = dependencies()
        self.assertEqual(unknown, set())
        self.assertEqual(len(library), 6)

        def targets(listed):
            return {one if isinstance(one, str) else one["name"] for one in listed
                    if isinstance(one, str) or not one.get("host")}
        self.assertEqual(targets(self.port["dependencies"]), library)
        self.assertEqual(targets(self.port["features"]["tools"]["dependencies"]), program)

    def test_the_portfile_is_cmake(self):
        # Each function of vcpkg only notes its arguments: what CMake itself would refuse, it refuses here.
        names = sorted(set(re.findall(r"^\s*(vcpkg_\w+)\(", self.portfile, re.MULTILINE)))
        script = "".join(f"function({name})\n  message(STATUS \"{name}: ${{ARGN}}\")\nendfunction()\n" for name in names)
        folder = Path(os.environ["WORK"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "port.cmake").write_text(
            "cmake_minimum_required(VERSION 3.25)\n" + script + f'set(FEATURES tools)\nset(PORT posenc)\nset(CURRENT_PACKAGES_DIR "{folder}/packages")\n'
            f'include("{PACKAGING}/vcpkg/portfile.cmake")\nmessage(STATUS "source: ${{SOURCE_PATH}}")\n')
        done = subprocess.run(["cmake", "-P", str(folder / "port.cmake")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"source: {ROOT}\n", done.stdout)
        self.assertIn("vcpkg_cmake_configure", done.stdout)
        self.assertTrue((folder / "packages/share/posenc/usage").is_file())


@NEEDS_YAML
class Conda(unittest.TestCase):
    def setUp(self):
        self.recipe = yaml.safe_load((PACKAGING / "conda/recipe.yaml").read_text())

    def test_version(self):
        self.assertEqual(self.recipe["context"]["version"], version())
        self.assertEqual(self.recipe["package"], {"name": "${{ name }}", "version": "${{ version }}"})

    def test_files_exist(self):
        folder = PACKAGING / "conda"
        self.assertTrue((folder / self.recipe["build"]["script"]).is_file())
        self.assertTrue(((folder / self.recipe["source"]["path"]) / self.recipe["about"]["license_file"]).is_file())
        for header in self.recipe["tests"][1]["package_contents"]["include"]:
            self.assertTrue((ROOT / "include" / header).is_file(), header)

    def test_options_exist(self):
        script = PACKAGING / "conda/build.sh"
        used = options_in(script.read_text())
        self.assertGreater(len(used), 4)
        self.assertEqual(used - options_of_cmake(), set())
        subprocess.run(["bash", "-n", str(script)], check=True)

    def test_dependencies(self):
        library, program, _ = dependencies()
        names = {"highway": "libhwy", "tbb": "tbb-devel", "sqlite3": "libsqlite"}
        wanted = {names.get(name, name) for name in library | program}
        self.assertEqual({one.split()[0] for one in self.recipe["requirements"]["host"]}, wanted)
        self.assertTrue(all("${{" in one or re.match(r"[a-z0-9-]+( >=[\d.]+)?$", one)
                            for part in self.recipe["requirements"].values() for one in part))

    def test_the_commands_are_known(self):
        program = os.environ.get("POSENC")
        if not program:
            self.skipTest("the program is not built here")
        for command in self.recipe["tests"][0]["script"]:
            words = command.split()
            self.assertEqual(words[0], "posenc")
            self.assertEqual(subprocess.run([program, *words[1:]], capture_output=True).returncode, 0, command)


class Packages(unittest.TestCase):
    def test_scripts_are_programs(self):
        for script in PACKAGING.rglob("build.sh"):
            self.assertTrue(os.access(script, os.X_OK), script)
            subprocess.run(["bash", "-n", str(script)], check=True)

    def test_the_version_stands_nowhere_else(self):
        description = json.loads((PACKAGING / "npm/package.json").read_text())
        self.assertEqual(description["version"], "0.0.0")  # build.mjs writes the version of the tree

    def test_builds_name_what_is_wrong(self):
        for kind in ("npm", "site"):
            script = f"packaging/{kind}/build.sh"
            for arguments, date, status, words in (((), "1", 2, "expected one argument, the folder to write to"),
                                                   (("/proc/nowhere",), "1", 1, "cannot write to /proc/nowhere"),
                                                   ((os.environ["WORK"],), "today", 1, "SOURCE_DATE_EPOCH must be")):
                done = subprocess.run([str(ROOT / script), *arguments], capture_output=True, text=True,
                                      env={**os.environ, "SOURCE_DATE_EPOCH": date})
                self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith(f"{script}: {words}"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
