// Reads the page again and puts its main part in place of the old one. Off until somebody chooses a time.
"use strict";

(() => {
    const NAME = "workqueue-refresh";
    const main = document.getElementById("workqueue-main");
    if (!main) return;

    const isInUse = () => document.hidden || main.contains(document.activeElement) || main.querySelector("details[open]");

    async function reload() {
        // What somebody reads or has the focus on is not taken from under them.
        if (isInUse()) return;
        const answer = await fetch(window.location.href, { credentials: "same-origin" });
        if (!answer.ok || answer.redirected) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById(main.id);
        if (fresh && !isInUse()) main.replaceChildren(...fresh.childNodes);
    }

    const label = document.createElement("label");
    const choice = document.createElement("select");
    for (const seconds of [0, 5, 15, 60]) {
        choice.add(new Option(seconds ? `${seconds} ${main.dataset.unit}` : main.dataset.off, String(seconds)));
    }
    label.className = NAME;
    label.append(`${main.dataset.label} `, choice);
    main.before(label);

    let timer;
    function start() {
        window.clearInterval(timer);
        window.sessionStorage.setItem(NAME, choice.value);
        if (choice.value !== "0") timer = window.setInterval(() => reload().catch(() => {}), Number(choice.value) * 1000);
    }
    const kept = window.sessionStorage.getItem(NAME);
    choice.value = ["5", "15", "60"].includes(kept) ? kept : "0";
    choice.addEventListener("change", start);
    start();
})();
