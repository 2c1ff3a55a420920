"""A person at a keyboard, without a pointer, who must see where they are."""

from __future__ import annotations

from typing import Any

MOST_STOPS = 60
"""Between the beginning of a page's content and anything on it."""

STOP = """() => {
    const stop = document.activeElement;
    const look = () => {
        const {outline, boxShadow, borderColor, backgroundColor, color, textDecoration} = getComputedStyle(stop);
        return [outline, boxShadow, borderColor, backgroundColor, color, textDecoration].join();
    };
    const before = window.lastStop;
    window.lastStop = stop;
    const {x, y, width, height} = stop.getBoundingClientRect();
    const focused = look();
    stop.blur();
    const blurred = look();
    stop.focus();
    return {
        name: `${stop.tagName} ${stop.id || stop.name || stop.textContent.trim()}`,
        isPage: stop === document.body,
        isSeen: focused !== blurred,
        isInside: width > 0 && height > 0 && x + width > 0 && y + height > 0 && y < innerHeight,
        isBehind: !before?.isConnected || !!(before.compareDocumentPosition(stop) & Node.DOCUMENT_POSITION_FOLLOWING),
    };
}"""
"""What the focus is on: whether it shows, where it is, and whether it stands behind the stop before."""


class Keyboard:
    """Keys of a page, and what each stop must be."""

    def __init__(self, page: Any) -> None:
        self._page = page

    def press(self, key: str) -> None:
        """Press one key."""
        self._page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._page.keyboard.type(text)

    def skip_to_content(self) -> None:
        """Take the first stop of the page, the link that leads past the header and the sidebar."""
        self.press("Tab")
        stop = self._page.evaluate(STOP)
        assert "Skip to main content" in stop["name"], stop
        assert stop["isSeen"] or stop["isInside"], stop
        self.press("Enter")

    def go_to(self, target: Any) -> None:
        """Press Tab until ``target`` has the focus; every stop is seen and stands behind the one before."""
        wanted = target.element_handle()
        for _ in range(MOST_STOPS):
            self.press("Tab")
            stop = self._page.evaluate(STOP)
            assert not stop["isPage"], f"Tab left the page before it came to {target}"
            assert stop["isSeen"], f"nothing shows that the focus is on {stop['name']}"
            assert stop["isInside"], f"the focus is out of sight, on {stop['name']}"
            assert stop["isBehind"], f"the focus went back to {stop['name']}"
            if wanted.evaluate("target => target === document.activeElement"):
                return
        raise AssertionError(f"{target} is not reached by {MOST_STOPS} stops")
