// Adds a button beside each element that names a text to copy. Without a script the text can still be selected.
"use strict";

(() => {
    if (!navigator.clipboard) return;

    const SVG = "http://www.w3.org/2000/svg";

    function icon() {
        const made = document.createElementNS(SVG, "svg");
        made.setAttribute("viewBox", "0 0 16 16");
        made.setAttribute("aria-hidden", "true");
        for (const [x, y] of [[2, 2], [5, 5]]) {
            const sheet = document.createElementNS(SVG, "rect");
            Object.entries({ x, y, width: 9, height: 9, rx: 1.5 }).forEach(([name, value]) => sheet.setAttribute(name, value));
            made.append(sheet);
        }
        return made;
    }

    function button(element) {
        const made = document.createElement("button");
        made.type = "button";
        made.className = "workqueue-copy";
        made.append(icon());
        made.title = element.dataset.label;
        made.setAttribute("aria-label", element.dataset.label);
        made.addEventListener("click", () => {
            const text = element.dataset.copy || element.textContent;
            navigator.clipboard.writeText(text).then(() => tell(made), () => {});
        });
        return made;
    }

    function tell(made) {
        made.classList.add("workqueue-copied");
        window.setTimeout(() => made.classList.remove("workqueue-copied"), 2000);
    }

    function addButtons() {
        for (const element of document.querySelectorAll("[data-copy]:not([data-has-button])")) {
            element.dataset.hasButton = "";
            // A link holds no button.
            (element.closest("a") || element).after(button(element));
        }
    }

    document.addEventListener("DOMContentLoaded", () => {
        addButtons();
        // A page that refreshes itself brings new elements.
        const main = document.getElementById("workqueue-main");
        if (main) new MutationObserver(addButtons).observe(main, { childList: true });
    });
})();
