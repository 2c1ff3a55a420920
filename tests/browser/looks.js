// What is wrong with how a page looks, as sentences. Called with what to look for.
(subject) => {
    const name = element => {
        const text = (element.innerText || element.value || "").trim().slice(0, 40);
        const classes = [...element.classList].map(each => `.${each}`).join("");
        return `${element.tagName.toLowerCase()}${element.id && `#${element.id}`}${classes} "${text}"`;
    };
    const isShown = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

    // Contrast, as WCAG 2.2 computes it.
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const rgba = colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
        return [red, green, blue, alpha / 255];
    };
    const over = (top, below) => [0, 1, 2].map(band => top[band] * top[3] + below[band] * (1 - top[3]));
    const ground = element => {
        const layers = [];
        for (let each = element; each; each = each.parentElement) layers.push(rgba(getComputedStyle(each).backgroundColor));
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
    };
    const luminance = colour =>
        colour
            .map(band => band / 255)
            .map(band => (band <= 0.04045 ? band / 12.92 : ((band + 0.055) / 1.055) ** 2.4))
            .reduce((sum, band, place) => sum + band * [0.2126, 0.7152, 0.0722][place], 0);
    const contrast = element => {
        const below = ground(element);
        const [one, other] = [over(rgba(getComputedStyle(element).color), below), below].map(luminance);
        return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    };
    const hasText = element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());

    // Ours is what has a class of ours, and all that is in it.
    const ours = selector => [...document.querySelectorAll(selector)].filter(element => element.closest("[class*=workqueue-]:not(body)"));

    const looks = {
        contrast: () =>
            ours("#content *, nav *")
                .filter(element => hasText(element) && isShown(element) && contrast(element) < 4.5)
                .map(element => `${name(element)} has a contrast of ${contrast(element).toFixed(2)}`),
        width: () => {
            const root = document.scrollingElement;
            if (root.scrollWidth <= innerWidth) return [];
            const wide = [...document.querySelectorAll("#content *")].filter(
                element => element.getBoundingClientRect().right > innerWidth + 1 && isShown(element),
            );
            return [`the page is ${root.scrollWidth} wide: ${wide.slice(0, 3).map(name)}`];
        },
        targets: () =>
            ours("#content :is(a, summary, select, button, input:not([type=hidden]))")
                .filter(element => isShown(element) && element.getBoundingClientRect().height < 44)
                .map(element => `${name(element)} is ${element.getBoundingClientRect().height.toFixed(0)} px high`),
    };
    document.getAnimations().forEach(animation => animation.finish());
    return looks[subject]();
};
