// Returns a list of errors in the layout of a page. A line of text counts as a rectangle.
(() => {
  const said = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) said.push(`the page is ${root.scrollWidth} px wide, its window ${root.clientWidth}`);

  const visible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const hidden = (element) => element.closest("thead") && getComputedStyle(element.closest("thead")).position === "absolute";
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style") || !visible(parent) || hidden(parent)) continue;
    if (parent.closest("svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) lines.push({ box, text: node.data.trim(), home: parent });
  }
  // Text in a chart, without the halo behind it.
  for (const node of document.querySelectorAll("svg text")) {
    if (!node.textContent.trim() || getComputedStyle(node).opacity === "0" || node.getAttribute("stroke-width") === "4") continue;
    lines.push({ box: node.getBoundingClientRect(), text: node.textContent, home: node });
  }

  for (const { box, text, home } of lines) {
    if (box.left < -0.5 || box.right > root.clientWidth + 0.5) said.push(`"${text.slice(0, 60)}" leaves the window: ${box.left} to ${box.right}`);
    for (let outer = home; outer && outer !== document.body; outer = outer.parentElement) {
      const style = getComputedStyle(outer);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      if (outer instanceof SVGElement && outer.tagName !== "svg") continue;
      const edge = outer.getBoundingClientRect();
      const cut = box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1;
      if (cut) said.push(`"${text.slice(0, 60)}" is cut off by <${outer.tagName.toLowerCase()} class="${outer.getAttribute("class")}">`);
    }
  }
  // A line of running text is taller than its letters: two lines overlap if they share over a quarter of the smaller height.
  const sorted = lines.filter(({ box }) => box.width && box.height).sort((a, b) => a.box.top - b.box.top);
  sorted.forEach((one, at) => {
    for (const other of sorted.slice(at + 1)) {
      if (other.box.top >= one.box.bottom) break;
      const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const high = Math.min(one.box.bottom, other.box.bottom) - other.box.top;
      if (wide > 1 && high > Math.min(one.box.height, other.box.height) / 4)
        said.push(`"${one.text.slice(0, 40)}" and "${other.text.slice(0, 40)}" overlap by ${wide.toFixed(1)} × ${high.toFixed(1)} px`);
    }
  });

  // The minimum contrast of text and background by WCAG 2.2 is 4.5 : 1, or 3 : 1 for large text.
  const parts = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = (colour) => {
    const [red, green, blue] = parts(colour).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = (element) => {
    for (let outer = element; outer; outer = outer.parentElement) {
      const colour = getComputedStyle(outer).backgroundColor;
      if (colour.startsWith("rgb") && (parts(colour)[3] ?? 1) > 0.5) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(0, 0, 0)" : "rgb(255, 255, 255)";
  };
  for (const { text, home } of lines) {
    const style = getComputedStyle(home);
    const drawn = home instanceof SVGElement;
    const [one, other] = [light(drawn ? style.fill : style.color), light(behind(home))].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < (large ? 3 : 4.5)) said.push(`"${text.slice(0, 40)}" is faint: ${ratio.toFixed(2)} : 1`);
  }
  return [...new Set(said)];
})();
