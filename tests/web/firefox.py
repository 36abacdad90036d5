"""A headless Firefox that a test drives over Marionette, its own protocol: no driver, no package beside Firefox."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

PATIENCE: Final = 120.0
"""Seconds that a busy machine may take for anything."""
_PREFERENCES: Final = {
    "marionette.port": 0,  # a free one, which it writes into the profile
    "browser.dom.window.dump.enabled": True,  # errors of a page, on standard error
    "devtools.console.stdout.content": True,
    "app.update.enabled": False,
    "app.normandy.enabled": False,
    "browser.startup.page": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def firefox_here() -> str | None:
    """Return the Firefox of this machine: the one that STATEK_FIREFOX names, Debian's, or any other."""
    named = os.environ.get("STATEK_FIREFOX")
    return named or shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One session: commands out, results in. `printed` is what the browser has written about its pages."""

    def __init__(self, connection: socket.socket, log: Path) -> None:
        self._connection = connection
        self._log = log
        self._numbers = itertools.count(1)
        self._read()
        self.command("WebDriver:NewSession")

    def command(self, name: str, **parameters: object) -> Any:
        """Return the result of a command; an error of the browser's is an `AssertionError`."""
        number = next(self._numbers)
        text = json.dumps([0, number, name, parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(text), text))
        _, answered, error, result = self._read()
        assert answered == number
        assert error is None, f"{name}: {error}"
        return result

    def _read(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._received(1)
        return json.loads(self._received(int(size[:-1])))

    def _received(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self._connection.recv(count - len(found))
            assert piece, f"Firefox has gone: {self.printed}"
            found += piece
        return found

    def open(self, page: Path, *, width: int, address: str = "") -> None:
        """Load a page in a window of that many pixels, from a link into it."""
        self.command("WebDriver:SetWindowRect", width=width, height=900)
        self.command("WebDriver:Navigate", url="about:blank")
        self.command("WebDriver:Navigate", url=page.as_uri() + address)
        self.until("return document.querySelector('h1') !== null")

    def run(self, script: str) -> Any:
        """Return what JavaScript returns in the page."""
        return self.command("WebDriver:ExecuteScript", script=script, args=[], sandbox=None)["value"]

    def until(self, script: str) -> None:
        """Wait until JavaScript returns something true."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            assert time.monotonic() < end, f"never: {script}"
            time.sleep(0.02)

    def picture(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        taken = self.command("WebDriver:TakeScreenshot", full=True, hash=False)
        path.write_bytes(base64.b64decode(taken["value"]))

    @property
    def printed(self) -> str:
        """What it has printed so far: errors of pages among it."""
        return self._log.read_text("utf-8", "replace")


@contextmanager
def started(executable: str, folder: Path) -> Iterator[Firefox]:
    """Give a Firefox with a profile of its own in `folder`."""
    profile = folder / "profile"
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines) + "\n")
    log = folder / "firefox.log"
    environment = {**os.environ, "HOME": str(folder), "MOZ_HEADLESS": "1"}
    command = [executable, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    with log.open("wb") as output:
        browser = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        port = _port(profile / "MarionetteActivePort", browser, log)
        with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as connection:
            yield Firefox(connection, log)
    finally:
        browser.terminate()
        browser.wait(30)


def _port(place: Path, browser: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + PATIENCE
    while not (place.is_file() and place.read_text().strip()):
        assert browser.poll() is None, f"Firefox ended: {log.read_text('utf-8', 'replace')}"
        assert time.monotonic() < end, "Firefox does not listen"
        time.sleep(0.05)
    return int(place.read_text())
