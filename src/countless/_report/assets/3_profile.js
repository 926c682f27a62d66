// Statistics of clusters over the rows on this page: what sets them apart, typical and borderline rows.

const MOST_TRAITS = 4, SMALLEST_DIFFERENCE = 0.2, MOST_FEATURES = 400, BINS = 18;
const nRows = data.rows.number.length;

function summarize(column) {
  if (column.kind === "categorical") return { ...column, share: shareOf(column, null) };
  let sum = 0, squares = 0, n = 0;
  const present = [];
  for (const value of column.values) if (value !== null) { sum += value; n += 1; present.push(value); }
  const mean = n ? sum / n : 0;
  for (const value of present) squares += (value - mean) ** 2;
  present.sort((a, b) => a - b);
  const at = (share) => present[Math.min(n - 1, Math.floor(share * n))];
  return { ...column, mean, deviation: n ? Math.sqrt(squares / n) : 0, n, low: n ? at(0.005) : 0, high: n ? at(0.995) : 0 };
}

function shareOf(column, rows) {
  const share = new Float64Array(column.levels.length);
  let n = 0;
  const add = (level) => { if (level >= 0) { share[level] += 1; n += 1; } };
  if (rows) for (const row of rows) add(column.values[row]);
  else column.values.forEach(add);
  return share.map((total) => (n ? total / n : 0));
}

const columns = data.columns.map(summarize);

// The standardised features by which rows are compared here.
const features = [];
for (const column of columns.filter((one) => one.used)) {
  if (features.length >= MOST_FEATURES) break;
  if (column.kind === "numeric") {
    const scale = column.deviation || 1;
    features.push(Float32Array.from(column.values, (value) => (value === null ? 0 : (value - column.mean) / scale)));
  } else {
    column.levels.slice(0, MOST_FEATURES - features.length).forEach((_, level) => {
      features.push(Float32Array.from(column.values, (value) => (value === level ? 1 : 0)));
    });
  }
}

function traitsOf(rows) {
  const outside = nRows - rows.length;
  if (!outside || !rows.length) return [];
  const found = [];
  columns.forEach((column, place) => {
    if (column.kind === "numeric") {
      let sum = 0, n = 0;
      for (const row of rows) if (column.values[row] !== null) { sum += column.values[row]; n += 1; }
      if (!n || n === column.n || !column.deviation) return;
      const here = sum / n, others = (column.mean * column.n - sum) / (column.n - n);
      found.push({ place, level: null, here, others, difference: (here - others) / column.deviation, used: column.used });
    } else {
      const here = shareOf(column, rows);
      column.levels.forEach((_, level) => {
        const all = column.share[level], deviation = Math.sqrt(all * (1 - all));
        const others = (all * nRows - here[level] * rows.length) / outside;
        if (deviation && here[level] > others) {
          found.push({ place, level, here: here[level], others, difference: (here[level] - others) / deviation, used: column.used });
        }
      });
    }
  });
  return found.filter((trait) => Math.abs(trait.difference) >= SMALLEST_DIFFERENCE)
    .sort((a, b) => b.used - a.used || Math.abs(b.difference) - Math.abs(a.difference)).slice(0, MOST_TRAITS);
}

function traitName(trait) {
  const column = columns[trait.place];
  return trait.level === null ? column.name : `${column.name} = ${column.levels[trait.level]}`;
}

function describeTraits(traits) {
  return traits.filter((trait) => trait.used).slice(0, 2)
    .map((trait) => (trait.level === null ? `${trait.difference > 0 ? "high" : "low"} ${traitName(trait)}` : traitName(trait))).join(", ");
}

function centersOf(clusters) {
  return clusters.map(({ rows }) => features.map((values) => {
    let sum = 0;
    for (const row of rows) sum += values[row];
    return rows.length ? sum / rows.length : 0;
  }));
}

function squaredDistance(row, center) {
  let sum = 0;
  for (let at = 0; at < features.length; at += 1) sum += (features[at][row] - center[at]) ** 2;
  return sum;
}

// The rows nearest to the mean of a cluster, and those nearly as close to another one's.
function notableRows(clusters, place, many = 3) {
  const own = clusters[place], centers = centersOf(clusters);
  const found = own.rows.slice(0, 2000).map((row) => {
    const distance = squaredDistance(row, centers[place]);
    let rival = -1, nearest = Infinity;
    clusters.forEach((other, at) => {
      if (at === place || other.id === NOISE) return;
      const further = squaredDistance(row, centers[at]);
      if (further < nearest) { nearest = further; rival = at; }
    });
    return { row, distance, rival, margin: nearest - distance };
  });
  const typical = [...found].sort((a, b) => a.distance - b.distance).slice(0, many);
  const chosen = new Set(typical.map((one) => one.row));
  const borderline = found.filter((one) => one.rival >= 0 && !chosen.has(one.row)).sort((a, b) => a.margin - b.margin).slice(0, many);
  return { typical, borderline };
}

function histogram(column, rows, low = column.low, high = column.high) {
  const bins = new Float64Array(BINS), width = high - low || 1;
  let n = 0;
  const add = (value) => {
    if (value === null) return;
    bins[Math.max(0, Math.min(BINS - 1, Math.floor(((value - low) / width) * BINS)))] += 1;
    n += 1;
  };
  if (rows) for (const row of rows) add(column.values[row]);
  else column.values.forEach(add);
  return bins.map((total) => (n ? total / n : 0));
}

function cellText(column, row) {
  const value = column.values[row];
  if (column.kind === "categorical") return value < 0 ? "" : column.levels[value];
  return value === null ? "" : String(value);
}

function rowName(row) {
  const name = data.rows.name ? data.rows.name[row] : "";
  return name || `row ${data.rows.number[row]}`;
}
