"""A headless Chromium driven through its pipe (Chrome DevTools Protocol), without any package for it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40, "PageDown": 34}


@dataclass
class Page:
    """A tab. ``complaints`` are what its console said, and exceptions that nothing caught."""

    reading: Any
    writing: int
    session: str = ""
    number: int = 0
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """The result of one command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": given}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self.number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]

    def _next(self) -> dict[str, Any]:
        said = json.loads(_message(self.reading))
        about = said.get("params", {})
        match said.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(about["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(about["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(about["args"]))
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
        return said

    def open(self, path: Path) -> None:
        """The file, loaded."""
        self.call("Page.navigate", url=path.absolute().as_uri())
        while self.eval("document.readyState") != "complete":
            pass

    def eval(self, expression: str) -> Any:
        """The value of a JavaScript expression; AssertionError where it throws."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def size(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme: str = "light", media: str = "screen") -> None:
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip

    def press(self, key: str) -> None:
        """One key, as a person would."""
        code = {"key": key, "windowsVirtualKeyCode": KEYS[key]} | ({"text": "\r"} if key == "Enter" else {})
        self.call("Input.dispatchKeyEvent", type="keyDown", **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def write(self, text: str) -> None:
        """Into what has the focus."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, fromSurface=True)
        path.write_bytes(base64.b64decode(shot["data"]))


def _message(reading: Any) -> bytes:
    """Up to the next NUL."""
    parts = bytearray()
    while (byte := reading.read(1)) != b"\0":
        assert byte, "the browser ended"
        parts += byte
    return bytes(parts)


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A tab of a browser of its own, which ends with the block."""
    assert CHROMIUM is not None, "there is a browser"
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
    # The protocol wants the numbers 3 and 4.
    shell = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$0" "$@"'
    process = subprocess.Popen(
        ["bash", "-c", shell, *command], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with os.fdopen(ours_in, "rb") as reading:
            yield _tab(Page(reading, ours_out))
    finally:
        process.kill()
        process.wait()
        os.close(ours_out)


def _tab(page: Page) -> Page:
    (target,) = [t for t in page.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
    page.session = page.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        page.call(f"{domain}.enable")
    return page
