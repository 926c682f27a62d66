// What is shown: the model's clusters after edits, or another labeling; every part listens to it.

const shown = { edits: [], labeling: null, state: null, labels: [], clusters: [], styles: new Map(), selected: null, row: null };
const listeners = [];
const rowListeners = [];

function clusterName(id) {
  if (id === NOISE) return "background";
  if (id === NOT_LABELLED) return "not labelled";
  return (shown.labeling === null && shown.state.names.get(id)) || `cluster ${id}`;
}

function styleOf(id) {
  if (id < 0) return { color: GREY, marker: "circle" };
  return shown.styles.get(id) ?? { color: GREY, marker: "circle" };
}

// A cluster keeps the colour of the cluster that it shares most rows with.
function restyle(previous) {
  const shared = new Map();
  shown.labels.forEach((label, row) => {
    const before = previous[row];
    if (label < 0 || before === undefined || before < 0) return;
    const key = `${label} ${before}`;
    shared.set(key, (shared.get(key) ?? 0) + 1);
  });
  const styles = new Map(), taken = new Set();
  const pairs = [...shared].sort((a, b) => b[1] - a[1]);
  for (const [key] of pairs) {
    const [label, before] = key.split(" ").map(Number);
    const slot = shown.styles.get(before)?.slot;
    if (slot === undefined || styles.has(label) || taken.has(slot)) continue;
    styles.set(label, slot);
    taken.add(slot);
  }
  let free = 0;
  const ids = shown.clusters.map((cluster) => cluster.id).filter((id) => id >= 0);
  for (const id of ids) {
    if (styles.has(id)) continue;
    while (taken.has(free)) free += 1;
    styles.set(id, free);
    taken.add(free);
  }
  shown.styles = new Map([...styles].map(([id, slot]) => [id, {
    slot, color: COLORS[slot % COLORS.length], marker: MARKERS[slot % MARKERS.length],
  }]));
}

function update() {
  const previous = shown.labels;
  shown.state = replay(shown.edits);
  const other = shown.labeling === null ? null : data.labelings[shown.labeling];
  shown.labels = other ? other.labels : data.rows.atom.map((atom) => shown.state.label[atom]);
  const rows = new Map();
  shown.labels.forEach((label, row) => {
    if (!rows.has(label)) rows.set(label, []);
    rows.get(label).push(row);
  });
  const sizes = other ? new Map([...rows].map(([id, own]) => [id, own.length])) : sizesOf(shown.state);
  if (other) sizes.delete(NOT_LABELLED);
  const total = [...sizes.values()].reduce((a, b) => a + b, 0);
  shown.clusters = [...sizes].map(([id, size]) => ({ id, size, share: size / total, rows: rows.get(id) ?? [] }))
    .sort((a, b) => (a.id === NOISE) - (b.id === NOISE) || b.size - a.size || a.id - b.id);
  restyle(previous);
  if (!shown.clusters.some((cluster) => cluster.id === shown.selected)) shown.selected = null;
  for (const listen of listeners) listen();
}

function nClusters() {
  return shown.clusters.filter((cluster) => cluster.id !== NOISE).length;
}

// The last choice of a number of clusters replaces the one before it. Without locked clusters it
// replaces all edits.
function chooseNumber(k) {
  shown.labeling = null;
  if (shown.state.locked.size) {
    const last = shown.edits.at(-1);
    shown.edits = [...(last?.action === "choose" ? shown.edits.slice(0, -1) : shown.edits), { action: "choose", n_clusters: k }];
  } else {
    shown.edits = k === modelNumber ? [] : [{ action: "choose", n_clusters: k }];
  }
  update();
}

function edit(step) {
  shown.edits = [...shown.edits, step];
  update();
}

const canEdit = data.editable;
const modelNumber = new Set(atoms.base.filter((label) => label >= 0)).size;

function selectCluster(id) {
  shown.selected = shown.selected === id ? null : id;
  for (const listen of listeners) listen();
}

function showRow(row) {
  shown.row = row;
  for (const listen of rowListeners) listen(row);
}

function say(text) {
  document.getElementById("status").textContent = text;
}
