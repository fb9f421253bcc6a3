// The page of one run: server-sent events update its figures, charts, plan and findings. The bundle provides vegaEmbed.
const { events, config, charts } = JSON.parse(document.getElementById("live").textContent);
const byId = (id) => document.getElementById(id);
const views = {};
// The points of the current trial, keyed by interval, and the samples of its host.
let points = new Map();
let hosts = [];
let state = null;
let left = "";
// The rows of the plan by trial, grouped by variant; the nodes of variants that have not changed are reused.
let variants = new Map();
let nodes = new Map();
let scale = "";
let ended = false;

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const three = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
const whole = (value) => Math.round(value).toLocaleString("en");
function duration(ns) {
  const [factor, unit] = UNITS.find(([least]) => ns >= least * 0.9995) ?? UNITS.at(-1);
  // Always three digits, as in the report: 1.90 ms.
  return `${(ns / factor).toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })} ${unit}`;
}
const rate = (value) => (value >= 100 ? whole(value) : three(value));

function element(name, text = "", className = "") {
  const node = document.createElement(name);
  node.textContent = text;
  if (className) node.className = className;
  return node;
}

async function embed() {
  // Expressions are interpreted, not compiled: the page's policy forbids eval.
  const options = { actions: false, ast: true, config, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: false, logLevel: 1 };
  for (const [name, spec] of Object.entries(charts)) {
    const datasets = { rows: [], faults: [] };
    views[name] = (await vegaEmbed(byId(`chart-${name}`), { ...spec, datasets }, options)).view;
  }
  document.documentElement.dataset.drawn = "all";
}

function rowsOf(name) {
  if (name === "processors") {
    const use = hosts.filter((sample) => sample.at >= 0);
    const kinds = ["host", "engine", "servers", "steal"].filter((kind) => kind === "host" || use.some((sample) => sample[kind] > 0.005));
    return kinds.flatMap((kind) => use.map((sample) => ({ at: sample.at, kind, value: sample[kind] })));
  }
  const kinds = { throughput: ["throughput", "due"], latency: ["p50", "p99", "max"], failed: ["failed"] }[name];
  const ordered = [...points.values()].sort((a, b) => a.at - b.at);
  return kinds.flatMap((kind) =>
    // A latency without a value interrupts the line: no operation succeeded.
    ordered.filter((point) => point[kind] !== null || name === "latency").map((point) => ({ at: point.at, kind, value: name === "latency" ? point[kind] || null : point[kind] })),
  );
}

// A fault that has not been lifted lasts until the last point.
function faultBands() {
  const last = Math.max(...[...points.values()].map((point) => point.at));
  return (state?.trial?.faults ?? []).map((fault) => ({ ...fault, to: fault.to ?? Math.max(last, fault.from) }));
}

// An update that arrives while the charts are drawn is drawn afterwards.
let [drawing, stale] = [false, false];
async function draw() {
  stale = true;
  if (drawing) return;
  drawing = true;
  while (stale) {
    stale = false;
    for (const [name, view] of Object.entries(views)) {
      const rows = rowsOf(name);
      byId(`figure-${name}`).hidden = !rows.length || (name === "failed" && rows.every((row) => row.value === 0));
      if (!rows.length) continue;
      view.data("rows", rows).data("faults", faultBands());
      await view.resize().runAsync();
    }
  }
  drawing = false;
}

function tile(name, text, shown = true) {
  byId(`tile-${name}`).textContent = text;
  byId(`box-${name}`).hidden = !shown;
}

function tiles() {
  const last = [...points.values()].sort((a, b) => a.at - b.at).at(-1);
  tile("throughput", last ? rate(last.throughput) : "–");
  tile("due", last && last.due !== null ? rate(last.due) : "–", Boolean(last && last.due !== null));
  for (const name of ["p50", "p99", "max"]) tile(name, last && last[name] !== null ? duration(last[name]) : "–");
  tile("failed", last ? rate(last.failed) : "–");
  byId("box-failed").classList.toggle("bad", Boolean(last?.failed));
  const use = hosts.at(-1);
  tile("host", use ? three(use.host) : "–");
}

function status(text, kind) {
  const badge = byId("status");
  badge.textContent = text;
  badge.className = `badge ${kind}`;
}

function summary() {
  const { planned, rough, done, failed, running, trial } = state;
  const interrupted = trial?.phase === "interrupted";
  status(running ? "running" : interrupted ? "the lab has exited; a trial was interrupted" : "ended", running ? "running" : interrupted ? "interrupted" : "ended");
  const parts = [`${whole(done)} of ${rough ? "about " : ""}${whole(planned)} ${planned === 1 ? "trial" : "trials"}`, failed ? `${whole(failed)} failed` : "", left ? `about ${left} left` : ""];
  byId("progress").textContent = parts.filter(Boolean).join(" · ");
  byId("bar").style.width = `${(100 * (done + failed)) / Math.max(planned, 1)}%`;
  byId("bar").parentElement.setAttribute("aria-valuenow", String(done));
  byId("report").hidden = running || !done;
  byId("expected").textContent = state.expect.length ? `Expected: ${state.expect.join(", ")}` : "";
  byId("heading").textContent = running ? "Now" : "Last trial";
  const facts = trial ? [trial.variant, trial.repeat ? `repeat ${trial.repeat}` : "", trial.phase, trial.clients ? `${trial.clients} ${trial.clients === 1 ? "client" : "clients"}` : "", trial.store && trial.durability ? `durability ${trial.durability}` : ""] : ["no trial yet"];
  byId("trial").textContent = facts.filter(Boolean).join(" · ");
}

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
};

function planRow(name, rows, place) {
  const row = element("div", "", "variant");
  row.append(element("div", name, "name"));
  const marks = element("div", "", "trials");
  const later = Array(Math.max(state.least - rows.length, 0)).fill({ trial: "", state: "planned", value: null, text: "", worst: "" });
  for (const trial of [...rows, ...later]) {
    const mark = element("i", "", `${trial.state} ${trial.worst}`);
    mark.title = [trial.trial, trial.state, trial.text, trial.worst].filter(Boolean).join(" · ");
    marks.append(mark);
  }
  row.append(marks);
  const measured = rows.filter((trial) => trial.value > 0);
  if (measured.length) {
    const strip = element("div", "", "strip");
    for (const trial of measured) {
      const dot = element("i", "", trial.worst);
      dot.style.left = place(trial.value);
      dot.title = `${trial.trial}: ${trial.text}`;
      strip.append(dot);
    }
    const mark = element("i", "", "median");
    mark.style.left = place(median(measured.map((trial) => trial.value)));
    strip.append(mark);
    row.append(strip);
  }
  return row;
}

function plan() {
  byId("metric").textContent = variants.size ? state.metric : "";
  let [low, high] = [null, null];
  for (const rows of variants.values()) {
    for (const trial of rows.values()) {
      if (!(trial.value > 0)) continue;
      if (low === null || trial.value < low.value) low = trial;
      if (high === null || trial.value > high.value) high = trial;
    }
  }
  // A logarithmic axis: variants differ by factors.
  const place = (value) => (high.value > low.value ? `${2 + (96 * Math.log(value / low.value)) / Math.log(high.value / low.value)}%` : "50%");
  const next = `${low?.value} ${high?.value} ${state.least}`;
  if (next !== scale) nodes = new Map();
  scale = next;
  for (const [name, rows] of variants) {
    if (!nodes.has(name)) nodes.set(name, planRow(name, [...rows.values()], place));
  }
  const all = [...variants.keys()].map((name) => nodes.get(name));
  if (low) {
    const row = element("div", "", "variant axis-row");
    const axis = element("div", "", "axis");
    axis.append(element("span", low.value < high.value ? low.text : ""), element("span", `${state.metric}, logarithmic; a dot for each trial, a bar at the median`), element("span", high.text));
    row.append(element("div"), axis);
    all.push(row);
  }
  byId("plan").replaceChildren(...all);
}

function updatePlan({ whole, rows }) {
  if (whole) [variants, nodes] = [new Map(), new Map()];
  for (const row of rows) {
    if (!variants.has(row.variant)) variants.set(row.variant, new Map());
    variants.get(row.variant).set(row.trial, row);
    nodes.delete(row.variant);
  }
}

function findings() {
  // One line for each check and severity: the newest message, and the number of trials.
  const groups = new Map();
  for (const finding of state.findings) {
    const key = `${finding.severity} ${finding.check}`;
    if (!groups.has(key)) groups.set(key, { ...finding, trials: new Set() });
    groups.get(key).trials.add(finding.trial);
  }
  const finished = state.done + state.failed;
  byId("checked").textContent = state.checked < finished ? `${whole(state.checked)} of ${whole(finished)} finished trials are checked so far` : "";
  const list = [...groups.values()].map((finding) => {
    const item = element("li");
    const others = finding.trials.size - 1;
    const where = others ? `${finding.trial} and ${others} more` : finding.trial;
    item.append(element("span", finding.severity, `badge ${finding.severity}`), " ", element("b", finding.check), ` ${finding.message} `, element("small", where));
    return item;
  });
  byId("findings").replaceChildren(...(list.length ? list : [element("li", "No check has found anything so far.")]));
}

function connect() {
  const source = new EventSource(events);
  source.addEventListener("begin", () => {
    points = new Map();
    hosts = [];
  });
  source.addEventListener("plan", (event) => updatePlan(JSON.parse(event.data)));
  source.addEventListener("state", (event) => {
    state = JSON.parse(event.data);
    ended = !state.running;
    summary();
    plan();
    findings();
    // The record of a fault is complete only when its trial has ended.
    if (ended) draw();
    document.documentElement.dataset.state = state.running ? "running" : "ended";
  });
  source.addEventListener("left", (event) => {
    left = JSON.parse(event.data).text;
    if (state) summary();
  });
  source.addEventListener("points", (event) => {
    const fresh = JSON.parse(event.data);
    if (fresh.points.some((point) => point.phase !== [...points.values()][0]?.phase)) points = new Map();
    for (const point of fresh.points) points.set(point.k, point);
    hosts.splice(fresh.first, Infinity, ...fresh.hosts);
    tiles();
    draw();
  });
  source.onopen = () => (document.documentElement.dataset.connected = "yes");
  source.onerror = () => {
    document.documentElement.dataset.connected = "no";
    // The browser reconnects automatically, except after an error response from the server.
    if (!ended) status("connection lost; trying again", "lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

// The figures and the plan do not wait for the charts.
tiles();
connect();
await embed();
draw();
