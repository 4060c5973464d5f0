#!/usr/bin/env python3
"""Attacks real `ferry` and `ferryd` processes: Tests/Attack/run.py BUILD-FOLDER [options]."""

import argparse
import importlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

import harness
import plot

TOPICS = ("names", "memory", "neighbours", "writers", "answers", "proxies", "servers", "poison", "shell", "rights")


def main():
    options = parse()
    for topic in TOPICS:
        importlib.import_module(topic)
    chosen = [name for name in harness.ATTACKS if wanted(name, options.only)]
    if options.list:
        for name in chosen:
            print(f"{name}: {promise(name)}")
        return 0
    if not chosen:
        print(f"no attack is named {', '.join(options.only)}; --list shows all", file=sys.stderr)
        return 2
    if not options.build:
        print("name the folder with ferry and ferryd, such as .build/release", file=sys.stderr)
        return 2
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    root = scratch()
    results = []
    try:
        for name in chosen:
            results.append(run(name, options, root))
    finally:
        if harness.Run.shared_cluster:
            harness.Run.shared_cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    report(results, options)
    return 1 if any(r["failures"] for r in results) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", help="the folder with ferry and ferryd")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="a topic, such as names, or one attack, such as names.values")
    parser.add_argument("--list", action="store_true", help="list the attacks and their promises")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--svg", metavar="FILE", help="draw the neighbours' times")
    parser.add_argument("--seed", type=int, default=1, help="of all that is chosen by chance")
    return parser.parse_args()


def wanted(name, only):
    return not only or any(name == o or name.split(".")[0] == o for o in only)


def promise(name):
    return harness.ATTACKS[name].__doc__.strip().splitlines()[0]


def scratch():
    """In memory if there is room: the disk shall not decide figures."""
    shared = pathlib.Path("/dev/shm")
    place = None
    if "TMPDIR" not in os.environ and shared.is_dir() and os.access(shared, os.W_OK):
        if shutil.disk_usage(shared).free > 8 << 30:
            place = str(shared)
    root = tempfile.mkdtemp(prefix="ferry-attack.", dir=place)
    os.chmod(root, 0o755)
    return root


def run(name, options, root):
    began = time.monotonic()
    attempt = harness.Run(name, os.path.abspath(options.build), root, options.seed)
    print(f"{name} …", end="", flush=True)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(2 * harness.HANG_LIMIT)
    try:
        harness.ATTACKS[name](attempt)
    except harness.Failed as failure:
        attempt.failures.append(str(failure))
    except Exception as error:
        # A server that died is a broken promise; everything else is a mistake of the attack.
        died = [s.store for s in attempt.servers if s.process and not s.is_alive]
        if died:
            attempt.failures.append(f"the server died ({', '.join(died)}): {error!r}")
        else:
            traceback.print_exc()
            attempt.failures.append(f"the attack itself failed: {error!r}")
    finally:
        signal.alarm(0)
        attempt.close()
    seconds = time.monotonic() - began
    print(f" {'holds' if not attempt.failures else 'FAILS'} ({seconds:.0f} s)", flush=True)
    for failure in attempt.failures:
        print(f"  broken: {failure[:600]}")
    return {
        "name": name, "promise": promise(name), "failures": attempt.failures,
        "seconds": round(seconds, 1), "series": attempt.series,
        "figures": {k: {"value": v, "unit": u} for k, (v, u) in attempt.figures.items()},
    }


def too_long(*_):
    raise harness.Failed(f"the attack did not end within {2 * harness.HANG_LIMIT} s")


def report(results, options):
    print()
    width = max(len(r["name"]) for r in results)
    for result in results:
        mark = "FAILS" if result["failures"] else "holds"
        print(f"{result['name']:<{width}}  {mark}  {result['seconds']:>5} s  {result['promise']}")
        for key, figure in result["figures"].items():
            value = figure["value"]
            shown = value if isinstance(value, str) else f"{value:,}"
            print(f"{'':<{width}}         {key}: {shown} {figure['unit']}".rstrip())
    failed = sum(1 for r in results if r["failures"])
    print(f"{len(results)} attacks, {failed} broken promises, seed {options.seed}")
    if options.svg:
        plot.write(options.svg, results)
    if options.json:
        for result in results:
            result.pop("series")
        with open(options.json, "w") as file:
            json.dump({"seed": options.seed, "attacks": results}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
