// The other sections: map, path, tree, alternatives, posterior, views, rows, columns, how to repeat.

function mapSection() {
  if (!data.maps.length && columns.length < 2) return null;
  if (!data.maps.length) Object.assign(mapChoice, { map: -1, x: 0, y: 1 });
  else Object.assign(mapChoice, { x: 0, y: Math.min(1, columns.length - 1) });
  const { wrap, tip } = withTip(null);
  let drawn = null;
  const box = plotBox("Map of the rows, coloured by cluster; the table of rows has the same data", () => { drawn = drawMap(tip); return drawn; });
  wrap.prepend(box);
  listeners.push(() => drawn?.refresh());
  rowListeners.push(() => drawn?.mark());
  const axes = element("div", { class: "fields" });
  const redraw = () => { fields(); box.redraw(); };
  const fields = () => {
    const maps = [...data.maps.map((one, at) => [at, one.name]), ...(columns.length > 1 ? [[-1, "two columns"]] : [])];
    axes.replaceChildren(field("Map by", select("Map by", maps, mapChoice.map, (value) => { mapChoice.map = Number(value); redraw(); })));
    if (mapChoice.map === -1) {
      for (const axis of ["x", "y"]) {
        const choices = columns.map((column, at) => [at, column.name]);
        axes.append(field(`${axis} axis`, select(`${axis} axis`, choices, mapChoice[axis], (value) => { mapChoice[axis] = Number(value); redraw(); })));
      }
    }
  };
  fields();
  const legend = element("ul", { class: "legend", "aria-label": "Clusters; press one to see it alone" });
  const details = element("div", { id: "row", "aria-live": "polite" }, element("p", { class: "muted small" }, "Point at a row on the map to see it."));
  listeners.push(() => {
    legend.replaceChildren(...shown.clusters.map((cluster) => element("li", {}, element(
      "button", { type: "button", "aria-pressed": String(shown.selected === cluster.id), title: clusterName(cluster.id), on: { click: () => selectCluster(cluster.id) } },
      swatch(styleOf(cluster.id)), element("span", { class: "name" }, clusterName(cluster.id)), element("span", { class: "muted small" }, cluster.size.toLocaleString("en-US"))))));
    if (shown.row !== null) rowDetails(details, shown.row);
  });
  rowListeners.push((row) => rowDetails(details, row));
  return section("map", "Map", null, axes, element("div", { class: "map" }, wrap, element("div", { class: "side" }, legend, details)));
}

function rowDetails(box, row) {
  const pairs = columns.flatMap((column) => [element("dt", {}, column.name), element("dd", {}, cellText(column, row) || "(missing)")]);
  box.replaceChildren(element("h3", {}, rowName(row)), element("p", { class: "small" }, clusterName(shown.labels[row])), element("dl", { class: "row" }, ...pairs));
}

function pathSection() {
  if (!data.path) return null;
  const box = plotBox("Number of clusters at every price; the marked plateaus stand out", drawPath);
  listeners.push(() => box.redraw());
  const rows = data.path.marked.map((one, rank) => {
    const at = data.path.k.indexOf(one.k), low = number(data.path.low[at]), high = data.path.high[at];
    const show = button(`Show ${one.k}`, () => { chooseNumber(one.k); say(`Showing ${count(one.k, "cluster")}`); });
    return [rank === 0 ? `${one.k} (chosen)` : String(one.k), high === null ? `from ${low}` : `${low} to ${number(high)}`, one.score === null ? "" : one.score.toFixed(2), show];
  });
  return section("path", "How many clusters", `Every cluster has a price. A number of clusters that stays the same over a wide range of prices, and more so than in data without clusters, is marked.`,
    element("div", { class: "two" }, box, table(["clusters", data.path.called, "evidence", ""], rows, new Set([2]), (at) => at === 0)));
}

function treeSection() {
  if (!tree || nItems < 3) return null;
  const box = plotBox("Tree of merges, coloured by cluster", drawTree);
  listeners.push(() => { if (shown.labeling === null) box.redraw(); });
  const some = nItems > MOST_LEAVES ? ` The ${MOST_LEAVES} highest branches are drawn; numbers count the rows below each.` : " Numbers count the rows of each leaf.";
  return section("tree", "Tree", `How groups of rows join. Branches with one colour lie within one cluster.${some}`, box);
}

function thumbnail(canvas, labels) {
  const { x, y } = data.maps[0];
  const width = 240, height = 180, pen = canvas.getContext("2d");
  canvas.width = width; canvas.height = height;
  const range = (values) => { let low = Infinity, high = -Infinity; for (const value of values) { if (value < low) low = value; if (value > high) high = value; } return [low, high - low || 1]; };
  const [left, wide] = range(x), [bottom, high] = range(y);
  const dot = nRows > 2000 ? 1.2 : 2.2;
  labels.forEach((label, row) => {
    pen.fillStyle = styleOf(label).color;
    pen.globalAlpha = label < 0 ? 0.3 : 0.8;
    pen.beginPath();
    pen.arc(6 + ((x[row] - left) / wide) * (width - 12), height - 6 - ((y[row] - bottom) / high) * (height - 12), dot, 0, 7);
    pen.fill();
  });
}

function alternativesSection() {
  if (!data.labelings.length && !data.candidates) return null;
  const content = [];
  if (data.candidates) {
    const rows = data.candidates.map((one) => [one.method, one.n_clusters ?? "failed", one.evidence?.toFixed(2), one.agreement?.toFixed(2), one.seconds.toFixed(2), one.note]);
    content.push(table(["candidate", "clusters", "evidence", "agreement", "seconds", "note"], rows, new Set([1, 2, 3, 4]), (at) => data.candidates[at].chosen));
  }
  if (data.labelings.length && data.maps.length) {
    const thumbs = element("div", { class: "thumbs" });
    const model = data.rows.atom.map((atom) => atoms.base[atom]);
    const entries = [[null, "the model's clusters", `${count(modelNumber, "cluster")}`, model],
      ...data.labelings.map((one, at) => [at, one.name, `${count(one.n_clusters, "cluster")}; ${percent(one.differs)} of rows differ`, one.labels])];
    const buttons = entries.map(([at, name, note, labels]) => {
      const canvas = element("canvas", { role: "img", "aria-label": `Map coloured by ${name}` });
      const made = element("button", { type: "button", class: "thumb", on: { click: () => { shown.labeling = at; update(); say(`Showing ${name}`); } } },
        canvas, element("strong", {}, name), element("br"), element("span", { class: "muted small" }, note));
      return { at, canvas, labels, made };
    });
    thumbs.append(...buttons.map((one) => one.made));
    listeners.push(() => { for (const one of buttons) one.made.setAttribute("aria-pressed", String(shown.labeling === one.at)); });
    const base = styleTable(model);
    for (const one of buttons) { withStyles(base, () => thumbnail(one.canvas, one.labels)); }
    content.push(thumbs);
    if (data.candidates) content.push(disagreementTable(model));
  }
  const kinds = new Set(data.labelings.map((one) => one.kind));
  const title = data.candidates ? "Candidates" : kinds.has("view") ? "Views" : "Draws";
  const lead = { Candidates: "The same rows by each method. Press one to see it everywhere on this page.", Views: "Columns that belong together divide the rows in their own way. Press one to see it everywhere on this page.", Draws: "Draws from the posterior: where they differ, the data is undecided. Press one to see it everywhere on this page." }[title];
  return section("alternatives", title, lead, ...content);
}

function styleTable(labels) {
  const ids = [...new Set(labels)].filter((id) => id >= 0);
  const sizes = new Map(ids.map((id) => [id, 0]));
  for (const label of labels) if (label >= 0) sizes.set(label, sizes.get(label) + 1);
  ids.sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
  return new Map(ids.map((id, slot) => [id, { slot, color: COLORS[slot % COLORS.length], marker: MARKERS[slot % MARKERS.length] }]));
}

function withStyles(styles, draw) {
  const kept = shown.styles;
  const free = styles.size;
  shown.styles = new Map(styles);
  for (const one of data.labelings) for (const label of one.labels) {
    if (label >= 0 && !shown.styles.has(label)) {
      const slot = free + (label % COLORS.length);
      shown.styles.set(label, { slot, color: COLORS[slot % COLORS.length], marker: MARKERS[slot % MARKERS.length] });
    }
  }
  draw();
  shown.styles = kept;
}

// Rows on which most candidates differ from the model.
function disagreementTable(model) {
  const differing = model.map((label, row) => data.labelings.filter((one) => one.labels[row] !== NOT_LABELLED && one.labels[row] !== label).length);
  const all = data.labelings.length;
  const agreed = differing.filter((n) => n === 0).length;
  const rows = differing.map((n, row) => [n, row]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 8);
  const text = element("p", {}, `All candidates agree on ${count(agreed, "row")} of ${nRows.toLocaleString("en-US")} (after their clusters are matched).`);
  if (!rows.length) return text;
  const cells = rows.map(([n, row]) => [
    button(rowName(row), () => { showRow(row); document.getElementById("map")?.scrollIntoView(); }),
    `cluster ${model[row]}`, `${n} of ${all}`,
    data.labelings.map((one) => `${one.name}: ${one.labels[row] < 0 ? "none" : one.labels[row]}`).join(", ")]);
  return element("div", {}, text, element("details", {}, element("summary", {}, "Rows on which most candidates differ"), table(["row", "model", "differ", "candidates' clusters"], cells)));
}

function posteriorSection() {
  const found = data.posterior;
  if (!found) return null;
  const bars = plotBox("Posterior of the number of clusters", () => drawBars(found.k, found.probability, "number of clusters", "probability", modelNumber));
  const facts = [`${count(found.n_chains, "chain")} of ${count(found.n_draws, "draw")}.`];
  if (found.r_hat !== null) facts.push(`R-hat ${found.r_hat.toFixed(2)} (1 where chains agree).`);
  if (found.effective_size !== null) facts.push(`Effective size ${Math.round(found.effective_size)}.`);
  const [low, high] = found.interval;
  const parts = [element("div", {}, bars, element("p", { class: "small muted" }, `95 % interval: ${low} to ${high}. ${facts.join(" ")}`))];
  if (found.similarity) {
    const { wrap, tip } = withTip(null);
    const names = found.similarity.rows.map((row) => `row ${row}`);
    wrap.prepend(plotBox("How often two rows are in one cluster", () => drawHeat(found.similarity.percent, names, tip, 330, false)));
    parts.push(element("div", {}, wrap, element("p", { class: "small muted" }, `How often two rows are in one cluster; ${names.length} rows, sorted by cluster.`)));
  }
  return section("posterior", "Posterior", "How probable each number of clusters is, and how sure the clusters are.", element("div", { class: "two" }, ...parts));
}

function dependenceSection() {
  const found = data.dependence;
  if (!found) return null;
  const { wrap, tip } = withTip(null);
  wrap.prepend(plotBox("Probability that two columns depend on each other", () => drawHeat(found.percent, found.columns, tip, 460, found.columns.length <= 30)));
  const rows = found.views.map((view, at) => [`view ${at + 1}`, view.columns.length, view.n_clusters, view.columns.join(", ")]);
  const some = found.columns.length < found.n_columns ? ` The first ${found.columns.length} of ${found.n_columns} columns are drawn.` : "";
  return section("dependence", "Which columns belong together", `The darker, the more probable that two columns depend on each other.${some}`,
    element("div", { class: "two" }, wrap, table(["view", "columns", "clusters", "names"], rows, new Set([1, 2]))));
}

function stabilitySection() {
  const found = data.stability;
  if (!found) return null;
  const bars = plotBox("Number of clusters in resamples", () => drawBars(found.k, found.share, "number of clusters", "share of resamples", modelNumber));
  const rows = found.clusters.map((one) => [`cluster ${one.cluster}`, one.jaccard.toFixed(2), one.jaccard >= 0.75 ? "stable" : one.jaccard > 0.5 ? "uncertain" : "dissolves"]);
  return section("stability", "Stability", `${count(found.n_draws, "bootstrap resample")}: how well each cluster is found again (mean Jaccard index; .75 and more is stable, .5 and less is not). The adjusted Rand index with the model is ${found.agreement.toFixed(2)} on average.`,
    element("div", { class: "two" }, table(["cluster", "Jaccard", ""], rows, new Set([1])), bars));
}

function groupsSection() {
  if (!data.groups) return null;
  const rows = data.groups.map((group) => [group.name, group.n_clusters]);
  return section("groups", "Data sets", "How many of the shared clusters each data set has.", table(["data set", "clusters"], rows, new Set([1])));
}

function pictureSection() {
  const found = data.picture;
  if (!found) return null;
  return section("picture", "Picture", `${count(found.n_segments, "segment")} in ${found.width} x ${found.height} pixels. The rows below are its superpixels.`,
    element("div", { class: "two picture" }, ...found.images.map((one) => element("figure", { style: { margin: 0 } }, element("img", { src: one.source, alt: one.name }), element("figcaption", { class: "small muted" }, one.name)))));
}

const FIRST_ROWS = 25;

function rowsSection() {
  if (!columns.length) return null;
  let most = FIRST_ROWS, wanted = "", cluster = "";
  const place = element("div"), summary = element("p", { class: "small muted", role: "status" });
  const search = element("input", { type: "search", placeholder: "text in any cell", on: { input: () => { wanted = search.value.trim().toLowerCase(); most = FIRST_ROWS; draw(); } } });
  const filter = element("div");
  const draw = () => {
    const found = [];
    for (let row = 0; row < nRows; row += 1) {
      if (cluster !== "" && String(shown.labels[row]) !== cluster) continue;
      if (shown.selected !== null && cluster === "" && shown.labels[row] !== shown.selected) continue;
      if (wanted && ![rowName(row), clusterName(shown.labels[row]), ...columns.map((column) => cellText(column, row))].some((text) => text.toLowerCase().includes(wanted))) continue;
      found.push(row);
    }
    const cells = found.slice(0, most).map((row) => [
      button(rowName(row), () => { showRow(row); document.getElementById("map")?.scrollIntoView(); }, { class: "quiet" }),
      element("span", { class: "of" }, swatch(styleOf(shown.labels[row])), clusterName(shown.labels[row])), ...columns.map((column) => cellText(column, row))]);
    const numbers = new Set(columns.flatMap((column, at) => (column.kind === "numeric" ? [at + 2] : [])));
    place.replaceChildren(table(["row", "cluster", ...columns.map((column) => column.name)], cells, numbers));
    if (found.length > most) place.append(element("p", {}, button("Show more rows", () => { most *= 4; draw(); })));
    summary.textContent = `${count(found.length, "row")}${found.length > most ? `, the first ${most} shown` : ""}`;
  };
  listeners.push(() => {
    const choices = [["", "all clusters"], ...shown.clusters.map((one) => [one.id, clusterName(one.id)])];
    if (!choices.some(([id]) => String(id) === cluster)) cluster = "";
    filter.replaceChildren(field("Rows of", select("Rows of", choices, cluster, (value) => { cluster = value; most = FIRST_ROWS; draw(); })));
    draw();
  });
  const some = data.source.rows_shown < data.source.rows_used ? `A sample of ${data.source.rows_shown.toLocaleString("en-US")} of ${data.source.rows_used.toLocaleString("en-US")} rows.` : null;
  return section("rows", "Rows", some, element("div", { class: "fields" }, field("Search", search), filter), summary, place);
}

function columnsSection() {
  if (!data.treatment.length) return null;
  const rows = data.treatment.map((one) => [one.name, one.kind, one.gaps, one.done]);
  const some = data.source.columns_shown < data.source.columns ? ` ${data.source.columns_shown} of ${count(data.source.columns, "column")} are on this page: those that tell the clusters apart best.` : "";
  return section("columns", "Columns", `What was done to each column before the clustering.${some}`, table(["column", "kind", "missing", "what was done"], rows, new Set([2])));
}

function repeatSection() {
  const { command, python, versions, parameters } = data.repeat;
  const content = [];
  if (command) content.push(element("h3", {}, "On the command line"), element("pre", {}, command));
  content.push(element("h3", {}, "In Python"), element("pre", {}, python));
  const parameterRows = Object.entries(parameters);
  if (parameterRows.length) content.push(element("details", {}, element("summary", {}, "All parameters"), table(["parameter", "value"], parameterRows)));
  content.push(element("p", { class: "small muted" }, Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ")));
  return section("repeat", "How to repeat this", null, ...content);
}
