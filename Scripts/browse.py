#!/usr/bin/env python3
"""Opens an address in a headless Chromium, and takes steps in its page.

    Scripts/browse.py ADDRESS STEP...

A step is the body of an async function in the page. It is repeated until it returns a value that is
not null, which is printed as a line of JSON. Other steps:

    @picture FILE   writes a picture of the page (PNG)
    @wait FILE      waits until the file exists
    @reload         loads the page again
    @crash          crashes the process of the page; @reload loads it in another tab
    @size W H       gives the window a size
    @dark           prefers dark colours

It exits with 1 if a step has no result within its time (--time, 60 s), or if the browser ends or
does not answer. FERRY_TEST_BROWSER names the browser: a path, or a name on the PATH.
"""
import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]


def program():
    """Returns the path of the browser."""
    wanted = os.environ.get("FERRY_TEST_BROWSER")
    found = next((path for path in map(shutil.which, [wanted] if wanted else NAMES) if path), None)
    if found is None:
        sys.exit(f"browse: FERRY_TEST_BROWSER names {wanted}, which is no program" if wanted else
                 "browse: no Chromium is installed (on Debian: apt-get install chromium-headless-shell)")
    return found


class Browser:
    """A browser that takes commands of the DevTools protocol over two pipes."""

    def __init__(self, profile, limit=60):
        # Seconds that an answer may take.
        self.limit = limit
        self.program = program()
        to_read, self.writer = os.pipe()
        self.reader, to_write = os.pipe()

        def descriptors():
            # 3 and 4 may be in use by these very pipes.
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)
            for number in (3, 4):
                os.set_inheritable(number, True)

        command = [self.program, "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required", "--no-proxy-server",
                   f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        # The files of a user's own browser are out of reach.
        homes = {name: profile for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=self.log, stdin=subprocess.DEVNULL, env=os.environ | homes)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.last = 0
        # The address of a page whose process has crashed.
        self.lost = None
        self.open()

    def open(self):
        """Goes on in another tab."""
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")

    def fail(self, event):
        """Ends this program with the last words of the browser."""
        self.log.seek(max(0, self.log.tell() - 2_000))
        words = self.log.read().decode(errors="replace").strip()
        sys.exit(f"browse: {self.program} {event}" + (f":\n{words}" if words else ""))

    def message(self, awaited):
        while b"\0" not in self.rest:
            if not select.select([self.reader], [], [], self.limit)[0]:
                self.fail(f"has not answered {awaited} for {self.limit:g} s")
            part = os.read(self.reader, 1 << 20)
            if not part:
                self.fail(f"has ended before it answered {awaited}")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def write(self, method, parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.writer, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            self.fail(f"has ended before {method}")

    def send(self, method, **parameters):
        self.write(method, parameters)
        while True:
            answer = self.message(method)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(answer["error"].get("message", "?"))
                return answer["result"]

    def crash(self):
        """Crashes the process of the page, and goes on in another tab.

        It has no answer. Other processes of the browser look alike: a whole Chromium draws its own
        window by pages, and ends or hangs if one of them is killed.
        """
        self.lost = self.evaluate("return location.href")
        self.write("Page.crash", {})
        while self.message("Page.crash").get("method") != "Inspector.targetCrashed":
            pass
        self.open()

    def evaluate(self, body):
        """Returns the value of the step; None while a page is being left."""
        try:
            result = self.send(
                "Runtime.evaluate", expression=f"(async () => {{ {body} }})()", awaitPromise=True,
                returnByValue=True, timeout=10_000)
        except RuntimeError:
            return None
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            return {"exception": details.get("exception", {}).get("description", details["text"])}
        return result["result"].get("value")

    def close(self):
        try:
            self.session = None
            self.limit = 10
            self.send("Browser.close")
        except (RuntimeError, OSError, SystemExit):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            # It may write its profile to a slow disk.
            self.process.kill()
            self.process.wait()


def until(limit, poll):
    end = time.monotonic() + limit
    while True:
        found = poll()
        if found is not None:
            return found
        if time.monotonic() > end:
            return None
        time.sleep(0.05)


def take(browser, step, limit):
    word, _, rest = step.partition(" ")
    if word == "@picture":
        picture = browser.send("Page.captureScreenshot", format="png")
        with open(rest, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
        return rest
    if word == "@wait":
        return until(limit, lambda: rest if os.path.exists(rest) else None)
    if word == "@reload":
        if browser.lost:
            browser.send("Page.navigate", url=browser.lost)
            browser.lost = None
        else:
            browser.send("Page.reload")
        return "reloaded"
    if word == "@crash":
        browser.crash()
        return "crashed"
    if word == "@dark":
        browser.send("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark"}])
        return "dark"
    if word == "@size":
        width, height = map(int, rest.split())
        browser.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=False)
        return rest
    return until(limit, lambda: browser.evaluate(step))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--time", type=float, default=60, metavar="SECONDS", help="of each step")
    parser.add_argument("address")
    parser.add_argument("steps", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ferry-browse", ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, options.time)
        try:
            browser.send("Page.navigate", url=options.address)
            for step in options.steps:
                result = take(browser, step, options.time)
                if result is None:
                    page = browser.evaluate("return document.documentElement.outerHTML.slice(0, 3000)")
                    sys.exit(f"browse: no result of “{step}” in {page}")
                print(json.dumps(result, ensure_ascii=False), flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
