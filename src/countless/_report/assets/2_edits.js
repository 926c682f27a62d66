// Edits, replayed on atoms by the rules of countless._edits; tests compare the two.

const SMALLEST_PART = 20;
const tree = data.tree;
const atoms = data.atoms;
const nItems = tree ? tree.children.length + 1 : 1;

function numberByAppearance(labels) {
  const numbers = new Map();
  return labels.map((label) => {
    if (!numbers.has(label)) numbers.set(label, numbers.size);
    return numbers.get(label);
  });
}

function itemLabelsAt(k) {
  if (tree.refined[k]) return tree.refined[k];
  const root = Array.from({ length: 2 * nItems - k }, (_, node) => node);
  for (let merge = nItems - k - 1; merge >= 0; merge -= 1) {
    for (const child of tree.children[merge]) root[child] = root[nItems + merge];
  }
  return numberByAppearance(root.slice(0, nItems));
}

const STEPS = {
  choose(state, edit) {
    const labels = itemLabelsAt(edit.n_clusters);
    const free = state.label.map((label) => label !== NOISE && !state.locked.has(label));
    const used = [...new Set(atoms.item.filter((_, atom) => free[atom]).map((item) => labels[item]))].sort((a, b) => a - b);
    const start = state.label.some((label) => state.locked.has(label)) ? state.unused : 0;
    const place = new Map(used.map((label, at) => [label, start + at]));
    state.label = state.label.map((label, atom) => (free[atom] ? place.get(labels[atoms.item[atom]]) : label));
    state.unused = start + used.length;
    for (const cluster of [...state.names.keys()]) if (!state.locked.has(cluster)) state.names.delete(cluster);
  },
  rename(state, edit) {
    state.names.set(edit.cluster, edit.name);
  },
  merge(state, edit) {
    const [first, ...others] = edit.clusters;
    state.label = state.label.map((label) => (others.includes(label) ? first : label));
    for (const other of others) state.names.delete(other);
  },
  split(state, edit) {
    const part = nextSplit(state, edit.cluster);
    state.label = state.label.map((label, atom) => (part[atom] ? state.unused : label));
    state.unused += 1;
  },
  lock(state, edit) { state.locked.add(edit.cluster); },
  unlock(state, edit) { state.locked.delete(edit.cluster); },
};

function nextSplit(state, cluster) {
  if (!tree) return null;
  const size = new Float64Array(2 * nItems - 1);
  state.label.forEach((label, atom) => { if (label === cluster) size[atoms.item[atom]] += atoms.rows[atom]; });
  tree.children.forEach(([a, b], merge) => { size[nItems + merge] = size[a] + size[b]; });
  for (const least of [size[size.length - 1] / SMALLEST_PART, 0]) {
    for (let merge = nItems - 2; merge >= 0; merge -= 1) {
      const [a, b] = tree.children[merge];
      const smaller = Math.min(size[a], size[b]);
      if (smaller > 0 && smaller >= least) {
        const below = new Uint8Array(2 * nItems - 1);
        below[size[a] < size[b] ? a : b] = 1;
        for (let node = nItems - 2; node >= 0; node -= 1) {
          if (below[nItems + node]) for (const child of tree.children[node]) below[child] = 1;
        }
        return state.label.map((label, atom) => label === cluster && below[atoms.item[atom]] === 1);
      }
    }
  }
  return null;
}

function replay(edits) {
  const state = { label: [...atoms.base], names: new Map(), locked: new Set(), unused: Math.max(-1, ...new Set(atoms.base)) + 1 };
  data.names.forEach((name, cluster) => { if (name) state.names.set(cluster, name); });
  for (const edit of edits) STEPS[edit.action](state, edit);
  return state;
}

function sizesOf(state) {
  const sizes = new Map();
  state.label.forEach((label, atom) => sizes.set(label, (sizes.get(label) ?? 0) + atoms.rows[atom]));
  return sizes;
}

function editsFile(edits, state) {
  const clusters = [...sizesOf(state)].filter(([cluster]) => cluster !== NOISE).sort((a, b) => a[0] - b[0])
    .map(([cluster, rows]) => ({ cluster, name: state.names.get(cluster) ?? "", rows }));
  return { format: "countless edits", version: 1, edits, clusters };
}
