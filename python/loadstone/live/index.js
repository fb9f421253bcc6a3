// The list of results: searches it, selects runs for comparison, and updates verdicts as results are judged.
const rows = document.getElementById("rows");
const search = document.getElementById("search");
const button = document.getElementById("compare");
const number = document.getElementById("number");

const all = () => (rows ? [...rows.children] : []);
const chosen = () => all().map((row) => row.querySelector("input")).filter((box) => box.checked).map((box) => box.value);

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let visible = 0;
  for (const row of all()) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    visible += row.hidden ? 0 : 1;
  }
  number.textContent = `${visible.toLocaleString("en")} of ${all().length.toLocaleString("en")} runs`;
}

function choose() {
  button.disabled = chosen().length < 2;
  button.textContent = chosen().length ? `Compare ${chosen().length}` : "Compare";
}

function show(run) {
  const row = all().find((each) => each.dataset.id === run.id);
  // The run began after this page was opened.
  if (!row) return false;
  const cells = row.querySelectorAll("td");
  const verdict = run.running ? "running" : run.verdict;
  const badge = cells[2].querySelector(".badge");
  badge.textContent = verdict || "…";
  badge.className = `badge ${verdict}`;
  badge.title = run.answer;
  [run.expectations, run.systems, run.metrics, run.trials].forEach((text, at) => (cells[at + 3].textContent = text));
  return true;
}

async function refresh() {
  try {
    const reply = await fetch("/runs.json");
    if (reply.ok && !(await reply.json()).map(show).every(Boolean)) location.reload();
    filter();
  } catch {
    number.textContent = "the server has stopped";
  }
}

search.addEventListener("input", filter);
rows?.addEventListener("change", choose);
button.addEventListener("click", () => {
  location.href = `/compare?${chosen().map((run) => `run=${encodeURIComponent(run)}`).join("&")}`;
});
filter();
choose();
setInterval(refresh, 3000);
