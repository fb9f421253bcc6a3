// The list of results: searches it, selects runs for comparison, and shows new runs and verdicts as they arrive.
// The search and the selection survive a reload, an update, and a return from a comparison.
const rows = document.getElementById("rows");
const search = document.getElementById("search");
const button = document.getElementById("compare");
const number = document.getElementById("number");

const all = () => (rows ? [...rows.children] : []);
const boxes = () => all().map((row) => row.querySelector("input"));
const chosen = () => boxes().filter((box) => box.checked).map((box) => box.value);
const save = () => sessionStorage.setItem(location.pathname, JSON.stringify({ search: search.value, chosen: chosen() }));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let visible = 0;
  for (const row of all()) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    visible += row.hidden ? 0 : 1;
  }
  number.textContent = `${visible.toLocaleString("en")} of ${all().length.toLocaleString("en")} runs`;
  save();
}

function choose() {
  button.disabled = chosen().length < 2;
  button.textContent = chosen().length ? `Compare ${chosen().length}` : "Compare";
  save();
}

function show(run, row) {
  const cells = row.querySelectorAll("td");
  const verdict = run.running ? "running" : run.verdict;
  const badge = cells[2].querySelector(".badge");
  badge.textContent = verdict || "…";
  badge.className = `badge ${verdict}`;
  badge.title = run.answer;
  [run.expectations, run.systems, run.metrics, run.trials].forEach((text, at) => (cells[at + 3].textContent = text));
}

// Rows that are already on the page keep the state of their checkboxes.
async function replaceRows() {
  const page = new DOMParser().parseFromString(await (await fetch("/")).text(), "text/html");
  const table = page.getElementById("rows");
  if (!rows || !table) return location.reload();
  const known = new Map(all().map((row) => [row.dataset.id, row]));
  rows.replaceChildren(...[...table.children].map((row) => known.get(row.dataset.id) ?? row));
}

async function refresh() {
  let runs;
  try {
    const reply = await fetch("/runs.json");
    if (!reply.ok) {
      number.textContent = "the server has a new token: open the address that loadstone printed";
      return;
    }
    runs = await reply.json();
    const names = (every) => every.sort().join("\n");
    if (names(runs.map((run) => run.id)) !== names(all().map((row) => row.dataset.id))) await replaceRows();
  } catch {
    number.textContent = "the server has stopped";
    return;
  }
  const byId = new Map(all().map((row) => [row.dataset.id, row]));
  for (const run of runs) if (byId.has(run.id)) show(run, byId.get(run.id));
  filter();
  choose();
}

search.addEventListener("input", filter);
rows?.addEventListener("change", choose);
button.addEventListener("click", () => {
  location.href = `/compare?${chosen().map((run) => `run=${encodeURIComponent(run)}`).join("&")}`;
});
// Browsers restore nothing on a page that must not be stored.
const saved = JSON.parse(sessionStorage.getItem(location.pathname) ?? '{"search": "", "chosen": []}');
search.value = saved.search;
for (const box of boxes()) box.checked = saved.chosen.includes(box.value);
filter();
choose();
setInterval(refresh, 3000);
