#!/usr/bin/env python3
"""Compares each target of Package.swift with the imports of its sources.

A target must name every module of this package that it imports, and none that it does not import.
Only tests may name programs without an import: they run them.

    swift package dump-package | Scripts/check-manifest.py
"""
import json
import pathlib
import re
import sys

IMPORT = re.compile(r"^\s*(?:@\w+ )*(?:public |package |internal |private )?import (?:\w+ )?(\w+)", re.M)


def imports(folder):
    """Returns the names of all modules that Swift files below a folder import."""
    found = set()
    for path in sorted(pathlib.Path(folder).rglob("*.swift")):
        found.update(IMPORT.findall(path.read_text(encoding="utf-8")))
    return found


def faults(manifest, imports=imports):
    """Returns a line for each module that a target names and does not import, or the reverse."""
    modules = {target["name"] for target in manifest["targets"]}
    programs = {target["name"] for target in manifest["targets"] if target["type"] == "executable"}
    lines = []
    for target in manifest["targets"]:
        if target["type"] == "system":
            continue
        named = {(entry.get("byName") or entry["target"])[0] for entry in target["dependencies"]}
        imported = imports(target["path"]) & modules
        if target["type"] == "test":
            imported |= named & programs
        name = target["name"]
        lines += [f"{name} imports {module} and does not name it" for module in sorted(imported - named)]
        lines += [f"{name} names {module} and does not import it" for module in sorted(named - imported)]
    return lines


def main():
    lines = faults(json.load(sys.stdin))
    print("\n".join(lines) if lines else "Package.swift names the imported modules.")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
