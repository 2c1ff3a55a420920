// Reads the page again and puts its main part in place of the old one. Off until somebody chooses a time.
"use strict";

(() => {
    const NAME = "workqueue-refresh";
    const main = document.getElementById("workqueue-main");
    if (!main) return;

    // What somebody reads, copies or has the focus on is not taken from under them.
    const isInUse = () =>
        document.hidden ||
        main.contains(document.activeElement) ||
        main.querySelector("details[open]") ||
        !document.getSelection().isCollapsed;

    async function reload() {
        const answer = await fetch(window.location.href, { credentials: "same-origin" });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        // Logged out, refused or gone, the answer is no page of ours.
        if (!answer.ok || !page.body.classList.contains("app-django_workqueue")) throw new Error(answer.statusText);
        const fresh = page.getElementById(main.id);
        // A job moves to another table when it ends, and with it to a page with another title.
        if (answer.redirected || !fresh) window.location.replace(answer.url);
        else if (!isInUse()) main.replaceChildren(...fresh.childNodes);
    }

    async function refresh() {
        if (choice.value === "0" || isInUse()) return;
        try {
            await reload();
            trouble.textContent = "";
        } catch {
            trouble.textContent = main.dataset.failed;
        }
    }

    const label = document.createElement("label");
    const choice = document.createElement("select");
    const trouble = document.createElement("output");
    for (const seconds of [0, 5, 15, 60]) {
        choice.add(new Option(seconds ? `${seconds} ${main.dataset.unit}` : main.dataset.off, String(seconds)));
    }
    const controls = document.createElement("p");
    controls.className = NAME;
    label.append(`${main.dataset.label} `, choice);
    controls.append(trouble, label);
    main.before(controls);

    let timer;
    function start() {
        window.clearInterval(timer);
        window.sessionStorage.setItem(NAME, choice.value);
        if (choice.value !== "0") timer = window.setInterval(refresh, Number(choice.value) * 1000);
    }
    const kept = window.sessionStorage.getItem(NAME);
    choice.value = ["5", "15", "60"].includes(kept) ? kept : "0";
    choice.addEventListener("change", start);
    document.addEventListener("visibilitychange", refresh);
    start();
})();
