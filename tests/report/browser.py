"""A real headless Chromium, driven over the WebDriver protocol by its own chromedriver. No library needed."""

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOUND = shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("google-chrome"))
SWITCHES = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
]
SLOW = int(os.environ.get("SLOW_PAGE", "0"))
"""Milliseconds that every answer to the page takes longer, on a processor six times slower; 0: as quick as it is."""
PATIENCE = 120
"""Seconds for one command, the start of Chromium among them."""


@dataclass(frozen=True)
class Browser:
    """One session. Raises ``WebDriverError`` where the browser says so, as it does when a dialog is open."""

    base: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise WebDriverError(json.load(error)["value"]["error"]) from None

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """What ``script`` returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def dialog(self) -> str | None:
        """The text of an open alert."""
        try:
            text: str = self.call("GET", "/alert/text")
        except WebDriverError:
            return None
        return text

    def size(self, width: int, height: int) -> None:
        """Of the page itself, below the width that a window can have too."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.cdp("Emulation.setDeviceMetricsOverride", metrics)

    def cdp(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def traces(self) -> list[dict[str, Any]]:
        """What was traced until another page was opened, in Chromium's trace format."""
        messages: list[dict[str, Any]] = []
        while lines := self.call("POST", "/se/log", {"type": "performance"}):
            messages += [json.loads(line["message"])["message"] for line in lines]
        return [one["params"] for one in messages if one["method"] == "Tracing.dataCollected"]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


def page_data(page: str) -> Any:
    """The data that stand in a run's page or piece."""
    [block] = re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)
    return json.loads(block)


class WebDriverError(Exception):
    pass


@contextmanager
def browser(traced: str = "") -> Iterator[Browser]:
    """A session of its own; chromedriver and Chromium end with it. ``traced``: categories of what it does that are kept
    for ``Browser.traces``."""
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert driver.stdout is not None
        ports = (re.search(rb"started successfully on port (\d+)", line) for line in driver.stdout)
        port = next(int(match[1]) for match in ports if match)
        session = start(Browser(f"http://127.0.0.1:{port}"), traced)
        try:
            yield session
        finally:
            session.call("DELETE", "")
    finally:
        driver.terminate()
        driver.communicate()


def start(driver: Browser, traced: str) -> Browser:
    options: dict[str, Any] = {"args": SWITCHES}
    always: dict[str, Any] = {"browserName": "chrome", "goog:chromeOptions": options}
    if traced:
        options["perfLoggingPrefs"] = {"enableNetwork": False, "enablePage": False, "traceCategories": traced}
        always["goog:loggingPrefs"] = {"performance": "ALL"}
    reply = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})
    session = Browser(f"{driver.base}/session/{reply['sessionId']}")
    if SLOW:
        session.cdp("Network.enable", {})
        line = {"offline": False, "latency": SLOW, "downloadThroughput": -1, "uploadThroughput": -1}
        session.cdp("Network.emulateNetworkConditions", line)
        session.cdp("Emulation.setCPUThrottlingRate", {"rate": 6})
    return session
