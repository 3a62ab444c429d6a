"""A real browser, headless, that notes whatever a page does and should not.

Playwright drives the system's Chromium; it never downloads one. A visit keeps what went wrong in
`faults`: words in the console, breaches of the Content-Security-Policy, requests to other hosts,
requests that failed, dialogs, windows, downloads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    expect,
)
from playwright.sync_api import sync_playwright as playwright_running

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
FIGURES_MS = 90_000
"""Until a dashboard has new numbers: after a reading it leaves the store alone for twenty times
what that took, and a busy machine makes it take long."""
_TIMEOUT_MS = 20_000
_LEFT = "net::ERR_ABORTED"
"""What was on its way, or a stream, when its page was left."""
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_AXE = Axe()
_HEED = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} forbids ${event.blockedURI || "inline"}`));
"""


def find_chromium() -> str:
    """Return where Chromium is.

    Raises:
        RuntimeError: it is not installed; these tests never go without it.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise RuntimeError(
            "the browser tests need Chromium, and there is none: apt-get install chromium"
        )
    return found


class Chromium:
    """One browser for many visits; a context manager."""

    def __enter__(self) -> Self:
        executable = find_chromium()
        expect.set_options(timeout=_TIMEOUT_MS)
        with contextlib.ExitStack() as stack:
            player = stack.enter_context(playwright_running())
            # Chromium refuses to run as root with a sandbox; only pages of these tests are opened.
            flags = ["--no-sandbox"] if os.geteuid() == 0 else []
            self._browser: Browser = player.chromium.launch(
                executable_path=executable, args=[*flags, "--disable-dev-shm-usage"]
            )
            stack.callback(self._browser.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def visit(
        self,
        *,
        scripts: bool = True,
        scheme: Literal["light", "dark"] = "light",
        size: dict[str, int] = DESKTOP,
    ) -> Iterator[Visit]:
        """Open a window of its own, with nothing remembered."""
        context = self._browser.new_context(
            java_script_enabled=scripts, color_scheme=scheme, reduced_motion="reduce",
            viewport={"width": size["width"], "height": size["height"]},
        )  # fmt: skip
        context.set_default_timeout(_TIMEOUT_MS)
        try:
            yield Visit(context, scripts=scripts)
        finally:
            context.close()


class Visit:
    """One window.

    Attributes:
        page: what Playwright calls it.
        faults: what went wrong since the window was opened.
        asked: addresses that were asked for.
    """

    def __init__(self, context: BrowserContext, *, scripts: bool) -> None:
        self.faults: list[str] = []
        self.asked: list[str] = []
        self._home, self._wanted = "", 200
        self._context = context
        if scripts:
            context.add_init_script(_HEED)
        self.page: Page = context.new_page()
        context.on("page", lambda page: self.faults.append(f"a window was opened: {page.url}"))
        self._listen(self.page)

    def _listen(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("request", self._requested)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        page.on("download", lambda file: self.faults.append(f"a download began: {file.url}"))
        page.on("dialog", self._asked_something)

    def _heard(self, message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        of_page = where == self.page.url and "Failed to load resource" in message.text
        if message.type in ("error", "warning") and not (of_page and self._wanted >= 400):
            self.faults.append(f"console {message.type}: {message.text} ({where})")

    def _asked_something(self, dialog: Any) -> None:
        self.faults.append(f"a dialog came up: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self.asked.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self._home:
            self.faults.append(f"asked another host: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != _LEFT:
            self.faults.append(f"failed: {request.url}: {request.failure}")

    def _answered(self, answer: Response) -> None:
        own = answer.request.is_navigation_request()
        if answer.status >= 400 and not (own and answer.status == self._wanted):
            self.faults.append(f"{answer.status}: {answer.url}")

    def open(self, url: str, status: int = 200) -> Response | None:
        """Go to an address and wait until everything of it is there."""
        parts = urlsplit(url)
        self._home, self._wanted = f"{parts.scheme}://{parts.netloc}", status
        answer = self.page.goto(url, wait_until="load")
        if answer is not None and parts.scheme != "file":
            assert answer.status == status, f"{url}: {answer.status}"
        return answer

    def allow_clipboard(self) -> None:
        """Let scripts write to the clipboard, as a browser does after a click."""
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])

    def show(self, scheme: Literal["light", "dark"]) -> None:
        """Change what the reader's system prefers."""
        self.page.emulate_media(color_scheme=scheme)

    def resize(self, size: dict[str, int]) -> None:
        self.page.set_viewport_size({"width": size["width"], "height": size["height"]})

    def axe(self, *, contrast_only: bool = False) -> list[str]:
        """Return what axe-core has against the page: contrast, names, landmarks, order."""
        only = {"type": "tag", "values": _RULES}
        if contrast_only:
            only = {"type": "rule", "values": ["color-contrast"]}
        # It would ask for style sheets again, which a page of a file may not.
        options = {"resultTypes": ["violations"], "runOnly": only, "preload": False}
        found = _AXE.run(self.page, options=options).response["violations"]
        return [
            f"{rule['id']}: {node['target']} {node['html'][:200]} {node['failureSummary'][:300]}"
            for rule in found
            for node in rule["nodes"]
        ]

    def text(self) -> str:
        """Return what a reader sees, without what scripts add: copy buttons and what they say."""
        text: str = self.page.evaluate(_TEXT)
        return text

    def overflow(self) -> list[str]:
        """Return what makes the page wider than the window."""
        found: list[str] = self.page.evaluate(_OVERFLOW)
        return found

    def broken(self) -> list[str]:
        """Return days in tables and lists that are broken: their column is too narrow."""
        found: list[str] = self.page.evaluate(_BROKEN)
        return found

    def covered(self) -> list[str]:
        """Return the texts that a copy button lies on."""
        found: list[str] = self.page.evaluate(_COVERED)
        return found

    def unfold(self, *, open_: bool = True) -> None:
        """Open, or close, everything that can be."""
        script = (
            "(open) => { for (const one of document.querySelectorAll('details')) one.open = open; }"
        )
        self.page.evaluate(script, open_)

    def until(self, question: str, one: Locator) -> None:
        """Wait until a question about an element is answered with yes.

        Playwright's own waiting in the page needs `eval`, which the pages forbid.
        """
        for _ in range(200):
            if one.evaluate(question):
                return
            self.page.wait_for_timeout(25)
        raise AssertionError(f"{question} of {one}: it never came to that")

    def inline(self, markup: str) -> list[str]:
        """Return scripts and styles within a page's markup, as this browser parses it."""
        found: list[str] = self.page.evaluate(_INLINE, markup)
        return found

    # ------------------------------------------------------------------ keyboard

    def stops(self) -> list[dict[str, Any]]:
        """Return all that the Tab key must reach, in the order of the document."""
        found: list[dict[str, Any]] = self.page.evaluate(_STOPS)
        return found

    def tab(self) -> dict[str, Any]:
        """Press Tab; return where the focus is, and whether it can be seen."""
        self.page.keyboard.press("Tab")
        found: dict[str, Any] = self.page.evaluate(_FOCUS)
        return found


_TEXT = """() => {
  const body = document.body.cloneNode(true);
  for (const one of body.querySelectorAll("button.copy, [role=status], script")) one.remove();
  return body.textContent.replace(/\\s+/g, " ").trim();
}"""
_OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (node) => {
    for (let at = node.parentElement; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible") return true;
    }
    return false;
  };
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.body.querySelectorAll("*")]
    .filter((one) => one.getBoundingClientRect().right > width + 1 && !scrolls(one))
    .map((one) => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 60)}`)
    .concat(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
}"""
_BROKEN = """() => {
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode());) {
    const cell = text.parentElement.closest("td, th, time");
    if (!cell || !cell.checkVisibility()) continue;
    for (const day of text.data.matchAll(/\\b\\d{4}-\\d{2}-\\d{2}\\b/g)) {
      const range = document.createRange();
      range.setStart(text, day.index);
      range.setEnd(text, day.index + day[0].length);
      if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) {
        found.push(`${day[0]} in ${text.parentElement.localName}`);
      }
    }
  }
  return found;
}"""
_COVERED = """() => {
  const found = [];
  for (const button of document.querySelectorAll("button.copy")) {
    const above = button.getBoundingClientRect();
    if (!button.checkVisibility()) continue;
    const source = button.parentElement.querySelector("[data-copy]");
    const end = source.closest("pre")?.getBoundingClientRect().right ?? Infinity;
    const range = document.createRange();
    range.selectNodeContents(source);
    for (const line of range.getClientRects()) {
      if (Math.min(line.right, end) > above.left && line.left < above.right &&
          line.bottom > above.top && line.top < above.bottom) {
        found.push(button.getAttribute("aria-label"));
        break;
      }
    }
  }
  return found;
}"""
_INLINE = """(markup) => {
  const page = new DOMParser().parseFromString(markup, "text/html");
  const found = [];
  for (const one of page.querySelectorAll("*")) {
    const name = one.localName;
    if (name === "style" || (name === "script" && (!one.src || one.textContent))) {
      found.push(`<${name}>`);
    }
    if (["iframe", "object", "embed", "base", "frame"].includes(name)) found.push(`<${name}>`);
    for (const { name: key, value } of one.attributes) {
      if (key === "style" || key.startsWith("on")) found.push(`${name} ${key}="${value}"`);
      const address = ["href", "src", "action", "formaction", "xlink:href", "data"].includes(key);
      const flat = value.replace(/[\\u0000-\\u0020]/g, "").toLowerCase();
      if (address && /^[a-z][a-z0-9+.-]*:/.test(flat) && !/^https?:/.test(flat)) {
        found.push(`${name} ${key}="${value.slice(0, 100)}"`);
      }
    }
  }
  return found;
}"""
_NAMED = """
const named = (one) => `${one.localName} ${(one.getAttribute("aria-label") ||
  one.textContent || one.name || one.id).trim().replace(/\\s+/g, " ").slice(0, 50)}`;
const placed = (one) => {
  const { left, top, right, bottom } = one.getBoundingClientRect();
  return { name: named(one), left: left + scrollX, top: top + scrollY, right: right + scrollX,
    bottom: bottom + scrollY, number: [...document.querySelectorAll("*")].indexOf(one) };
};
"""
_STOPS = (
    "() => {"
    + _NAMED
    + """
  return [...document.querySelectorAll(
    "a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((one) => one.checkVisibility() && !one.disabled).map(placed);
}"""
)
_FOCUS = (
    "() => {"
    + _NAMED
    + """
  const one = document.activeElement;
  if (!one || one === document.body) return { name: "", number: -1 };
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { ...placed(one), seen: drawn && inside && box.width > 0 && box.height > 0,
    scrolls: one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight };
}"""
)
