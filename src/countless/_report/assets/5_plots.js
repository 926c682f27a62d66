// Plots by Bokeh, whose JavaScript is in this file. Nothing here compiles text to code.

const plots = [];
const touch = matchMedia("(pointer: coarse)").matches;

function figure(settings = {}) {
  const muted = variable("--muted"), grid = variable("--grid");
  const { x_label: xLabel, y_label: yLabel, ...rest } = settings;
  const made = Bokeh.Plotting.figure({
    height: 300, sizing_mode: "stretch_width", tools: "", toolbar_location: null,
    background_fill_color: null, border_fill_color: null, outline_line_color: null, min_border_right: 12, ...rest,
  });
  made.toolbar.logo = null;
  for (const [axis, label] of [[made.xaxis, xLabel], [made.yaxis, yLabel]]) {
    axis.axis_label = label ?? "";
    axis.axis_label_text_color = muted;
    axis.axis_label_text_font_style = "normal";
    axis.axis_label_text_font_size = "13px";
    axis.major_label_text_color = muted;
    axis.major_label_text_font_size = "12px";
    axis.axis_line_color = variable("--line");
    axis.major_tick_line_color = variable("--line");
    axis.minor_tick_line_color = null;
  }
  made.xgrid.grid_line_color = grid;
  made.ygrid.grid_line_color = grid;
  return made;
}

// A place on the page that draws itself again when the colours change.
function plotBox(label, draw) {
  const box = element("div", { class: "plot", role: "img", "aria-label": label });
  let drawing = false, again = false;
  const redraw = async () => {
    again = true;
    if (drawing) return;
    drawing = true;
    while (again) {
      again = false;
      if (box.view) box.view.remove();
      box.replaceChildren();
      box.view = await Bokeh.Plotting.show(draw(), box);
    }
    drawing = false;
  };
  plots.push(redraw);
  box.redraw = redraw;
  return box;
}

function redrawAll() {
  for (const redraw of plots) redraw();
}

function mapSource() {
  return new Bokeh.ColumnDataSource({ data: mapColumns() });
}

const mapChoice = { map: 0, x: null, y: null };

function mapCoordinates() {
  if (mapChoice.map >= 0) return data.maps[mapChoice.map];
  const axis = (place) => {
    const column = columns[place];
    if (column.kind === "numeric") return column.values.map((value) => value ?? NaN);
    // Rows of one level are spread a little, always in the same way.
    return column.values.map((value, row) => value + 0.5 * (((row * 0.618034) % 1) - 0.5));
  };
  return { x: axis(mapChoice.x), y: axis(mapChoice.y), x_label: columns[mapChoice.x].name, y_label: columns[mapChoice.y].name };
}

function mapColumns() {
  const { x, y } = mapCoordinates();
  const color = [], marker = [], alpha = [], size = [];
  const usual = nRows > 5000 ? 4 : nRows > 1000 ? 6 : 8;
  for (const label of shown.labels) {
    const style = styleOf(label);
    const faded = shown.selected !== null && label !== shown.selected;
    color.push(style.color);
    marker.push(style.marker);
    alpha.push(faded ? 0.08 : label < 0 ? 0.45 : 0.8);
    size.push(label < 0 ? usual - 2 : usual);
  }
  return { x, y, color, marker, alpha, size };
}

function drawMap(tip) {
  const { x_label: xLabel, y_label: yLabel } = mapCoordinates();
  const made = figure({ height: matchMedia("(max-width: 760px)").matches ? 340 : 500, x_label: xLabel, y_label: yLabel, toolbar_location: "above", output_backend: "canvas" });
  const source = mapSource();
  const points = made.scatter({ field: "x" }, { field: "y" }, {
    source, size: { field: "size" }, marker: { field: "marker" },
    fill_color: { field: "color" }, line_color: { field: "color" }, fill_alpha: { field: "alpha" }, line_alpha: { field: "alpha" },
  });
  const ring = new Bokeh.ColumnDataSource({ data: { x: [], y: [] } });
  made.scatter({ field: "x" }, { field: "y" }, { source: ring, size: 18, marker: "circle", fill_color: null, line_color: variable("--text"), line_width: 2.5 });
  const hover = new Bokeh.HoverTool({ renderers: [points], tooltips: null, mode: "mouse" });
  const tap = new Bokeh.TapTool({ renderers: [points], behavior: "inspect" });
  const pan = new Bokeh.PanTool(), wheel = new Bokeh.WheelZoomTool();
  made.add_tools(pan, wheel, new Bokeh.BoxZoomTool(), new Bokeh.ResetTool(), new Bokeh.SaveTool(), hover, tap);
  made.toolbar.active_drag = touch ? null : pan;
  made.toolbar.active_scroll = null;
  source.inspect.connect(([, { geometry }]) => {
    const row = source.inspected.indices[0];
    tip.hidden = row === undefined;
    if (row === undefined) return;
    tip.textContent = `${rowName(row)} · ${clusterName(shown.labels[row])}`;
    tip.style.left = `${geometry.sx + 14}px`;
    tip.style.top = `${geometry.sy + 14}px`;
    showRow(row);
  });
  const mark = () => {
    const row = shown.row;
    const { x, y } = source.data;
    ring.data = row === null ? { x: [], y: [] } : { x: [x[row]], y: [y[row]] };
  };
  made.refresh = () => { source.data = mapColumns(); mark(); };
  made.mark = mark;
  mark();
  return made;
}

function currentNumber() {
  return shown.labeling === null ? nClusters() : null;
}

function drawPath() {
  const { k, low, high, marked, called } = data.path;
  const made = figure({ height: 300, x_axis_type: "log", y_axis_type: "log", x_label: called, y_label: "clusters" });
  const x = [], y = [];
  const floor = low.findLast((value) => value > 0) ?? 1;
  for (let at = k.length - 1; at >= 0; at -= 1) {
    const right = high[at] ?? low[at] * 3;
    x.push(Math.max(low[at], floor / 3), right);
    y.push(k[at], k[at]);
  }
  made.line(x, y, { line_color: variable("--strong-line"), line_width: 2 });
  const places = marked.map((one) => k.indexOf(one.k));
  places.forEach((at, rank) => {
    made.line([Math.max(low[at], floor / 3), high[at] ?? low[at] * 3], [k[at], k[at]], {
      line_color: variable("--accent"), line_width: rank === 0 ? 8 : 5, line_alpha: rank === 0 ? 0.9 : 0.45, line_cap: "round",
    });
  });
  const chosen = k.indexOf(currentNumber());
  if (chosen >= 0) {
    const right = high[chosen] ?? low[chosen] * 3;
    made.scatter([Math.sqrt(Math.max(low[chosen], floor / 3) * right)], [k[chosen]], { marker: "circle", size: 14, fill_color: variable("--ground"), line_color: variable("--text"), line_width: 3 });
  }
  made.yaxis.ticker = new Bokeh.FixedTicker({ ticks: [1, 2, 3, 5, 10, 20, 50, 100].filter((tick) => tick <= k.at(-1)) });
  return made;
}

const MOST_LEAVES = 30;

// The top of the dendrogram: leaves are the nodes that remain after all but the last merges.
function treeLayout() {
  const leaves = Math.min(MOST_LEAVES, nItems), first = nItems - leaves;
  const height = (node) => (node < nItems ? 0 : tree.height[node - nItems]);
  const rows = new Float64Array(2 * nItems - 1);
  const byCluster = new Map();
  const itemOf = new Int32Array(2 * nItems - 1).map((_, node) => node);
  atoms.item.forEach((item, atom) => { rows[item] += atoms.rows[atom]; });
  tree.children.forEach(([a, b], merge) => { rows[nItems + merge] = rows[a] + rows[b]; });
  for (let merge = first - 1; merge >= 0; merge -= 1) for (const child of tree.children[merge]) itemOf[child] = itemOf[nItems + merge];
  atoms.item.forEach((item, atom) => {
    const leaf = itemOf[item];
    if (!byCluster.has(leaf)) byCluster.set(leaf, new Map());
    const counts = byCluster.get(leaf);
    counts.set(shown.state.label[atom], (counts.get(shown.state.label[atom]) ?? 0) + atoms.rows[atom]);
  });
  const place = new Map(), of = new Map(), found = { links: [], leaves: [] };
  const visit = (root) => {
    // Without recursion: a chain may be as deep as there are leaves.
    const stack = [[root, false]];
    while (stack.length) {
      const [node, done] = stack.pop();
      if (node < nItems + first) {
        const counts = [...byCluster.get(node)].sort((a, b) => b[1] - a[1]);
        place.set(node, found.leaves.length);
        of.set(node, counts[0][0]);
        found.leaves.push({ at: found.leaves.length, rows: rows[node], cluster: counts[0][0], share: counts[0][1] / rows[node], height: 0 });
        continue;
      }
      const [a, b] = tree.children[node - nItems];
      if (!done) { stack.push([node, true], [b, false], [a, false]); continue; }
      place.set(node, (place.get(a) + place.get(b)) / 2);
      of.set(node, of.get(a) === of.get(b) ? of.get(a) : null);
      found.links.push({ left: place.get(a), right: place.get(b), cluster: of.get(node), low: [height(a), height(b)], high: height(node), leaf: [a < nItems + first, b < nItems + first] });
    }
  };
  visit(2 * nItems - 2);
  return found;
}

function drawTree() {
  const { links, leaves } = treeLayout();
  // Heights range over orders of magnitude: their square roots are drawn.
  const up = (value) => Math.sqrt(Math.max(value, 0));
  const top = Math.max(...links.map((link) => up(link.high)), 1e-12);
  const made = figure({
    height: 330, y_range: [-0.16 * top, 1.05 * top], x_range: [-0.7, leaves.length - 0.3], y_label: `${tree.scale}, square root`,
  });
  const color = (cluster) => (cluster === null ? variable("--strong-line") : styleOf(cluster).color);
  made.multi_line(
    links.map((link) => [link.left, link.left, link.right, link.right]),
    links.map((link) => [link.leaf[0] ? 0 : up(link.low[0]), up(link.high), up(link.high), link.leaf[1] ? 0 : up(link.low[1])]),
    { line_color: links.map((link) => color(link.cluster)), line_width: 2 },
  );
  made.scatter(leaves.map((leaf) => leaf.at), leaves.map(() => -0.03 * top), {
    marker: leaves.map((leaf) => styleOf(leaf.cluster).marker), size: leaves.length > 20 ? 9 : 12,
    fill_color: leaves.map((leaf) => color(leaf.cluster)), line_color: null,
  });
  made.text(leaves.map((leaf) => leaf.at), leaves.map(() => -0.07 * top), leaves.map((leaf) => String(leaf.rows)), {
    text_align: "center", text_baseline: "top", text_color: variable("--muted"), text_font_size: leaves.length > 20 ? "9px" : "12px",
    angle: 0,
  });
  made.xaxis.visible = false;
  made.xgrid.grid_line_color = null;
  return made;
}

function drawBars(values, shares, xLabel, yLabel, chosen) {
  const made = figure({ height: 240, x_label: xLabel, y_label: yLabel, y_range: [0, 1.08 * Math.max(...shares)] });
  made.vbar({
    x: values, top: shares, width: 0.8, line_color: null,
    fill_color: values.map((value) => (value === chosen ? variable("--accent") : variable("--others"))),
  });
  const step = Math.max(1, Math.ceil(values.length / 12));
  made.xaxis.ticker = new Bokeh.FixedTicker({ ticks: values.filter((_, at) => at % step === 0) });
  made.xgrid.grid_line_color = null;
  return made;
}

function drawHeat(rows, names, tip, height, labelled) {
  const n = rows.length, x = [], y = [], alpha = [], value = [];
  rows.forEach((cells, row) => cells.forEach((cell, at) => { x.push(at); y.push(n - 1 - row); alpha.push(cell / 100); value.push(cell); }));
  const made = figure({ height, x_range: [-0.5, n - 0.5], y_range: [-0.5, n - 0.5] });
  const source = new Bokeh.ColumnDataSource({ data: { x, y, alpha } });
  const cells = made.rect({ field: "x" }, { field: "y" }, 1, 1, { source, fill_color: variable("--accent"), fill_alpha: { field: "alpha" }, line_color: null });
  made.add_tools(new Bokeh.HoverTool({ renderers: [cells], tooltips: null }));
  source.inspect.connect(([, { geometry }]) => {
    const at = source.inspected.indices[0];
    tip.hidden = at === undefined;
    if (at === undefined) return;
    tip.textContent = `${names[x[at]]} and ${names[n - 1 - y[at]]}: ${value[at]} %`;
    tip.style.left = `${geometry.sx + 14}px`;
    tip.style.top = `${geometry.sy + 14}px`;
  });
  made.xgrid.grid_line_color = null;
  made.ygrid.grid_line_color = null;
  if (!labelled) {
    made.xaxis.visible = false;
    made.yaxis.visible = false;
    return made;
  }
  const short = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);
  for (const [axis, order] of [[made.xaxis, names], [made.yaxis, [...names].reverse()]]) {
    axis.ticker = new Bokeh.FixedTicker({ ticks: order.map((_, at) => at) });
    axis.major_label_overrides = new Map(order.map((name, at) => [at, short(name)]));
  }
  made.xaxis.major_label_orientation = 0.9;
  return made;
}

function withTip(box) {
  const tip = element("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const wrap = element("div", { class: "tipped", on: { pointerleave: () => { tip.hidden = true; } } }, box, tip);
  return { wrap, tip };
}
