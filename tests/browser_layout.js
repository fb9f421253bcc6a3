// What is wrong with how a page is laid out: returns a list of complaints. Lines of text are taken as rectangles.
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
  // Words of a chart; a halo stands exactly under its own words.
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
  // A line of running text is taller than its letters: two lines overlap when they share more than a quarter of it.
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
  return [...new Set(said)];
})();
