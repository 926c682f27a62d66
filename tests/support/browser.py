"""A real browser for tests of pages: Debian's chromium, or any chrome with its driver."""

import json
import shutil
import tempfile
import time
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 60.0


def open_browser(downloads: Path, width: int = 1280):
    """Return a browser; the test is skipped with its reason where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    binary = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp()}", f"--window-size={width},1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    where = {"behavior": "allow", "downloadPath": str(downloads)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    return browser


class Page:
    """One page in the browser, and what the tests ask of it."""

    def __init__(self, browser, path: Path):
        self.browser = browser
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")

    def run(self, script: str, *arguments):
        return self.browser.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        until = time.monotonic() + PATIENCE
        while not self.run(f"return Boolean({condition})"):
            if time.monotonic() > until:
                raise AssertionError(f"never true: {condition}; {self.errors()}")
            time.sleep(0.05)

    def find(self, selector: str):
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str):
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return self.run(script, selector)

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def choose(self, selector: str, value) -> None:
        """Choose an option of a select."""
        self.run(
            "const box = document.querySelector(arguments[0]); box.value = arguments[1];"
            "box.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            str(value),
        )

    def sizes(self) -> dict[str, int]:
        """Return the clusters in the legend, and their numbers of rows."""
        pairs = zip(self.texts(".legend .name"), self.texts(".legend .small"), strict=True)
        return {name: int(size.replace(",", "")) for name, size in pairs}

    def errors(self) -> list[str]:
        """Return what the page complained about, such as blocked scripts."""
        log = self.browser.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Return the addresses that requests left for, but for the page and its own data."""
        asked, blocked = {}, set()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            parameters = message["params"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                address = parameters.get("url") or parameters["request"]["url"]
                asked[parameters["requestId"]] = address
            elif parameters.get("blockedReason") == "csp":
                blocked.add(parameters["requestId"])
        own = ("file:", "data:", "blob:")
        left = [address for request, address in asked.items() if request not in blocked]
        return [address for address in left if not address.startswith(own)]
