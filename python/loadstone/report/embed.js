// Draws every chart of the page. The bundle provides vegaEmbed.
const { config, charts } = JSON.parse(document.getElementById("charts").textContent);
const options = {
  actions: false,
  // Expressions are interpreted, not compiled: the page's policy forbids eval.
  ast: true,
  config,
  defaultStyle: false,
  mode: "vega-lite",
  // CSS variables work in SVG only; with them, charts follow the page's colour scheme automatically.
  renderer: "svg",
};
for (const node of document.querySelectorAll("[data-chart]")) {
  try {
    await vegaEmbed(node, charts[node.dataset.chart], options);
  } catch (error) {
    node.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
}
// For browsers without ::details-content.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((node) => (node.open = true)));
document.documentElement.dataset.drawn = "all";
