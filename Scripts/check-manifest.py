#!/usr/bin/env python3
"""Compares each target of Package.swift with the imports of its sources.

A target must name every module of this package that it imports, and none that it does not import. Modules
that an imported one exports again count as imported: SwiftPM compiles a target again only if a module that
it names has changed. Only the tests of processes may name programs without an import: they run them.
Other tests would compile the whole device or the whole server after each edit.

    swift package dump-package | Scripts/check-manifest.py
"""
import json
import pathlib
import re
import sys

IMPORT = re.compile(r"^\s*(?:@\w+ )*(?:public |package |internal |private )?import (?:\w+ )?(\w+)", re.M)
RUNNERS = {"PairTests", "SimulationTests"}
EXPORT = re.compile(r"^\s*@_exported (?:public )?import (\w+)", re.M)


def imports(folder, pattern=IMPORT):
    """Returns the names of all modules that Swift files below a folder import."""
    found = set()
    for path in sorted(pathlib.Path(folder).rglob("*.swift")):
        found.update(pattern.findall(path.read_text(encoding="utf-8")))
    return found


def exports(folder):
    """Returns the names of all modules that Swift files below a folder export again."""
    return imports(folder, EXPORT)


def dependencies(target):
    """Returns the names of a target's dependencies; True for those without a condition."""
    entries = (entry.get("byName") or entry["target"] for entry in target["dependencies"])
    return {entry[0]: entry[1] is None for entry in entries}


def exported(manifest, exports):
    """Returns all modules that each module exports again on every system, also through others."""
    direct = {}
    for target in manifest["targets"]:
        named = dependencies(target)
        found = set() if target["type"] == "system" else exports(target["path"])
        direct[target["name"]] = {name for name in found if named.get(name)}

    def reach(name):
        return direct[name].union(*(reach(other) for other in direct[name]))

    return {name: reach(name) for name in direct}


def faults(manifest, imports=imports, exports=exports):
    """Returns a line for each module that a target names and does not import, or the reverse."""
    again = exported(manifest, exports)
    modules = {target["name"] for target in manifest["targets"]}
    programs = {target["name"] for target in manifest["targets"] if target["type"] == "executable"}
    lines = []
    for target in manifest["targets"]:
        if target["type"] == "system":
            continue
        named = set(dependencies(target))
        imported = imports(target["path"]) & modules
        imported |= {other for name in imported for other in again[name]} - {target["name"]}
        name = target["name"]
        if name in RUNNERS:
            imported |= named & programs
        lines += [f"{name} imports {module} and does not name it" for module in sorted(imported - named)]
        lines += [f"{name} names {module} and does not import it" for module in sorted(named - imported)]
    return lines


def main():
    lines = faults(json.load(sys.stdin))
    print("\n".join(lines) if lines else "Package.swift names the imported modules.")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
