"""A headless Chromium spoken to through a pipe: the DevTools protocol without any package."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-dev-shm-usage --no-first-run "
    "--hide-scrollbars --remote-debugging-pipe"
)


def find_browser():
    """Return the command of a Chromium, or None."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One tab of a browser; what the page asked for and what it complained about is kept."""

    def __init__(self, command, folder):
        there, self.out = os.pipe()  # we write to out, the browser reads it as 3
        self.back, here = os.pipe()  # the browser writes to 4
        # The shell moves both ends to where the protocol wants them.
        line = f'exec "$0" {FLAGS} --user-data-dir="$1" about:blank 3<&{there} 4>&{here}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, command, str(folder)], pass_fds=(there, here), stderr=subprocess.DEVNULL
        )
        os.close(there)
        os.close(here)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        for end in (self.out, self.back):
            os.close(end)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def call(self, method, **params):
        """Send a command and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds=600.0):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self.back, 1 << 16)
            assert part, "the browser has ended"
            self.rest += part
        first, _, self.rest = self.rest.partition(b"\0")
        return json.loads(first)

    def open(self, path, width=1280, height=900, dark=False, media="screen"):
        """Show a file at a width, light or dark, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def value(self, expression):
        """Return the value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        """Press a key, Tab for instance."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def screenshot(self, path):
        """Write a picture of the whole page."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def complaints(self):
        """Return errors and warnings of the console."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in kinds]

    def requests(self):
        """Return the addresses that were asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
