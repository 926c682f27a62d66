// The head of the page, the bar with the slider and the edits, and the order of the sections.

function drawVerdict() {
  const { source, verdict } = data;
  const left = source.rows - source.rows_used;
  const about = [`${count(source.rows_used, "row")}${left ? ` (${count(left, "row")} with gaps left out)` : ""}`];
  if (source.columns) about.push(count(source.columns, "column"));
  if (source.rows_shown < source.rows_used) about.push(`this page shows a sample of ${count(source.rows_shown, "row")}`);
  document.getElementById("about").textContent = `${source.name}: ${about.join(", ")}`;
  const meter = document.getElementById("meter");
  meter.append(element("p", { class: "big" }, verdict.headline));
  if (verdict.confidence !== null) {
    meter.append(
      element("div", { class: "meter", role: "img", "aria-label": `Confidence ${verdict.confidence.toFixed(2)} of 1` }, element("span", { style: { width: `${100 * verdict.confidence}%` } })),
      element("p", { class: "small" }, `Confidence ${verdict.confidence.toFixed(2)}`),
      element("p", { class: "small muted" }, verdict.confidence_of));
  }
  const words = document.getElementById("words");
  words.append(...verdict.lines.map((line) => element("p", {}, line)));
  if (verdict.advice.length) words.append(element("p", {}, element("strong", {}, "What to try")), element("ul", {}, ...verdict.advice.map((line) => element("li", {}, line))));
  if (data.edits) words.append(element("p", { class: "notice" }, `Edited: ${count(data.edits.edits.length, "edit")} ${data.edits.edits.map((one) => one.action).join(", ")}.`));
}

function slider() {
  const { k, low, high, marked, called } = data.path;
  const last = k.length - 1;
  const out = element("output", { id: "number" });
  // Numbers are spread by their logarithm, so that small ones have room.
  const steps = 1000, at = (place) => Math.round((steps * Math.log(place + 1)) / Math.log(last + 1 || 2));
  const places = k.map((_, place) => at(place));
  const nearest = (value) => places.reduce((best, one, place) => (Math.abs(one - value) < Math.abs(places[best] - value) ? place : best), 0);
  const input = element("input", {
    type: "range", id: "slider", min: 0, max: steps, step: 1,
    on: {
      input: () => move(nearest(Number(input.value))),
      keydown: (event) => {
        const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        go(step);
      },
    },
  });
  let current = 0;
  const move = (place) => { if (place !== current || shown.labeling !== null) chooseNumber(k[place]); };
  const go = (step) => move(Math.max(0, Math.min(last, current + step)));
  const marks = marked.map((one, rank) => element("button", {
    type: "button", class: rank === 0 ? "mark first" : "mark", style: { left: `calc(8px + (100% - 16px) * ${places[k.indexOf(one.k)] / steps})` },
    "aria-label": `Show ${one.k} clusters, ${rank === 0 ? "the chosen number" : "another candidate"}`, on: { click: () => chooseNumber(one.k) },
  }, rank === 0 ? `▲ ${one.k} chosen` : `△ ${one.k}`));
  listeners.push(() => {
    const chosen = shown.edits.findLast((one) => one.action === "choose")?.n_clusters ?? modelNumber;
    current = Math.max(0, k.indexOf(chosen));
    if (document.activeElement !== input || nearest(Number(input.value)) !== current) input.value = places[current];
    const price = high[current] === null ? `above ${number(low[current])}` : number(Math.sqrt(Math.max(low[current], high[current] / 1e6) * high[current]));
    out.textContent = `${count(nClusters(), "cluster")}`;
    input.setAttribute("aria-valuetext", `${count(k[current], "cluster")} at a ${called} of ${price}`);
    label.textContent = `Number of clusters — ${called} ${price}`;
  });
  const label = element("label", { for: "slider" });
  return element("div", { class: "grow" }, element("div", {}, label), element("div", { class: "slider" },
    button("−", () => go(-1), { "aria-label": "Fewer clusters" }), element("div", { class: "track" }, input, ...marks), element("div", { class: "buttons" }, button("+", () => go(1), { "aria-label": "More clusters" }), out)));
}

function save() {
  const content = JSON.stringify(editsFile(shown.edits, shown.state), null, 1);
  const address = URL.createObjectURL(new Blob([`${content}\n`], { type: "application/json" }));
  const link = element("a", { href: address, download: "edits.json" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  say("Saved edits.json");
}

function drawBar() {
  const bar = document.getElementById("bar");
  if (data.path && tree) bar.append(slider());
  if (data.labelings.length) {
    const holder = element("div");
    bar.append(holder);
    listeners.push(() => {
      const choices = [["", "the model's clusters"], ...data.labelings.map((one, at) => [at, `${one.kind}: ${one.name} (${one.n_clusters})`.replace(/^(draw|view): /, "")])];
      holder.replaceChildren(field("Show", select("Show", choices, shown.labeling ?? "", (value) => { shown.labeling = value === "" ? null : Number(value); update(); })));
    });
  }
  if (!data.path && !data.labelings.length) {
    const out = element("output", {});
    listeners.push(() => { out.textContent = count(nClusters(), "cluster"); });
    bar.append(out);
  }
  const edits = element("div", { class: "buttons" });
  bar.append(edits);
  listeners.push(() => {
    if (!canEdit) { edits.replaceChildren(element("span", { class: "small muted" }, data.not_editable)); return; }
    if (shown.labeling !== null) { edits.replaceChildren(element("span", { class: "small muted" }, "Edits start from the model's clusters.")); return; }
    const unsaveable = tree && !tree.predicts && shown.edits.some((one) => one.action === "choose" || one.action === "split");
    const n = shown.edits.length;
    const undo = button("Undo", () => { shown.edits = shown.edits.slice(0, -1); update(); say("Undone"); }, { disabled: n === 0, id: "undo" });
    const saver = button(n ? `Save ${count(n, "edit")}` : "Save edits", save, { class: "main", disabled: n === 0 || unsaveable, id: "save" });
    if (unsaveable) saver.title = "This method has no rule that would give new rows to these clusters";
    edits.replaceChildren(undo, saver);
  });
}

function drawTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
    root.dataset.theme = isDark ? "light" : "dark";
    redrawAll();
  });
  dark.addEventListener("change", redrawAll);
}

function start() {
  if (data.format !== "countless report" || data.version !== 1) throw new Error(`this page cannot show ${data.format} ${data.version}`);
  drawVerdict();
  drawBar();
  const made = [pictureSection, mapSection, cardsSection, pathSection, treeSection, alternativesSection, posteriorSection, dependenceSection, stabilitySection, groupsSection, rowsSection, columnsSection, repeatSection]
    .map((make) => make()).filter((one) => one !== null);
  document.getElementById("sections").append(...made);
  document.getElementById("nav").append(...made.map((one) => element("a", { href: `#${one.id}` }, one.querySelector("h2").textContent)));
  update();
  redrawAll();
  drawTheme();
  document.documentElement.dataset.ready = "true";
}

try {
  start();
} catch (error) {
  const problem = document.getElementById("problem");
  problem.hidden = false;
  problem.textContent = `This page could not be drawn: ${error.message}`;
  throw error;
}
