// A card for each cluster: its name, size, what sets it apart, some of its rows, and edits.

const FIRST_CARDS = 24;

function traitPicture(trait, rows, color) {
  const column = columns[trait.place];
  let here, all;
  if (column.kind === "numeric") {
    here = histogram(column, rows);
    all = histogram(column, null);
  } else {
    const own = shareOf(column, rows);
    const order = column.levels.map((_, level) => level).sort((a, b) => column.share[b] - column.share[a]).slice(0, 8);
    if (!order.includes(trait.level)) order[order.length - 1] = trait.level;
    here = order.map((level) => own[level]);
    all = order.map((level) => column.share[level]);
  }
  const top = Math.max(...here, ...all) || 1, width = 100 / here.length;
  const picture = svg("svg", { viewBox: "0 0 100 38", preserveAspectRatio: "none", role: "img" });
  picture.append(svg("title", {}, `${traitName(trait)}: this cluster in colour, all rows in grey`));
  here.forEach((share, at) => {
    picture.append(svg("rect", { x: at * width, width: width * 0.94, y: 37 - (36 * all[at]) / top, height: (36 * all[at]) / top, fill: "var(--others)", "fill-opacity": 0.55 }));
    picture.append(svg("rect", { x: at * width + width * 0.17, width: width * 0.6, y: 37 - (36 * share) / top, height: (36 * share) / top, fill: color }));
  });
  picture.append(svg("line", { x1: 0, x2: 100, y1: 37.4, y2: 37.4, stroke: "var(--strong-line)", "stroke-width": 0.8 }));
  return picture;
}

function traitLine(trait, rows, color) {
  const format = trait.level === null ? number : percent;
  const arrow = trait.difference > 0 ? "↑" : "↓";
  const unused = trait.used ? "" : " (not used in the clustering)";
  return element("div", { class: "trait" },
    traitPicture(trait, rows, color),
    element("div", {},
      element("p", { class: "what" }, `${arrow} ${traitName(trait)}${unused}`),
      element("p", { class: "values" }, `here ${format(trait.here)}, others ${format(trait.others)}`)));
}

function rowTable(list, traits, clusters) {
  const places = [...new Set(traits.map((trait) => trait.place))].slice(0, 4);
  const near = list.some((one) => one.near);
  const headings = ["row", ...(near ? ["close to"] : []), ...places.map((place) => columns[place].name)];
  const rows = list.map((one) => [
    button(rowName(one.row), () => { showRow(one.row); document.getElementById("map").scrollIntoView(); }),
    ...(near ? [clusterName(clusters[one.rival].id)] : []),
    ...places.map((place) => cellText(columns[place], one.row)),
  ]);
  return table(headings, rows);
}

function card(cluster, place) {
  const style = styleOf(cluster.id), traits = cluster.id === NOISE ? [] : traitsOf(cluster.rows);
  const locked = shown.labeling === null && shown.state.locked.has(cluster.id);
  const title = element("h3", { tabindex: -1 }, clusterName(cluster.id));
  const made = element("article", { class: locked ? "card locked" : "card", "data-cluster": cluster.id },
    element("header", {}, swatch(style), title, element("span", { class: "size" }, `${count(cluster.size, "row")}, ${percent(cluster.share)}`)),
    element("div", { class: "share" }, element("span", { style: { width: `${100 * cluster.share}%`, background: style.color } })),
    traits.length ? element("p", { class: "muted small" }, describeTraits(traits)) : element("p", { class: "muted small" }, cluster.id === NOISE ? "Rows that belong to no cluster." : "Nothing sets it apart from the other rows."),
    ...traits.map((trait) => traitLine(trait, cluster.rows, style.color)));
  const stable = data.stability?.clusters.find((one) => one.cluster === cluster.id);
  if (stable && shown.labeling === null && !shown.edits.length) {
    const word = stable.jaccard >= 0.75 ? "stable" : stable.jaccard > 0.5 ? "uncertain" : "dissolves";
    made.append(element("p", { class: "small" }, `Stability ${stable.jaccard.toFixed(2)}: ${word} in resamples`));
  }
  if (features.length && cluster.rows.length > 1 && cluster.id !== NOISE) {
    const more = element("details", {}, element("summary", {}, "Typical and borderline rows"));
    more.addEventListener("toggle", () => {
      if (!more.open || more.children.length > 1) return;
      const { typical, borderline } = notableRows(shown.clusters, place);
      more.append(element("p", { class: "small muted" }, "Typical: nearest to the mean of the cluster."), rowTable(typical, traits, shown.clusters));
      if (borderline.length) {
        more.append(element("p", { class: "small muted" }, "Borderline: nearly as close to another cluster."), rowTable(borderline.map((one) => ({ ...one, near: true })), traits, shown.clusters));
      }
    });
    made.append(more);
  }
  if (canEdit && shown.labeling === null && cluster.id !== NOISE) made.append(editButtons(cluster, title, locked));
  return made;
}

function editButtons(cluster, title, locked) {
  const others = shown.clusters.filter((one) => one.id !== cluster.id && one.id !== NOISE && !shown.state.locked.has(one.id));
  const name = clusterName(cluster.id);
  const merge = select(`Merge ${name} with`, [["", "Merge with …"], ...others.map((one) => [one.id, clusterName(one.id)])], "", (value) => {
    if (value !== "") { edit({ action: "merge", clusters: [cluster.id, Number(value)] }); say(`Merged ${name}`); }
  });
  merge.disabled = locked || !others.length;
  const split = button("Split", () => { edit({ action: "split", cluster: cluster.id }); say(`Split ${name}`); }, { "aria-label": `Split ${name}` });
  split.disabled = locked || !tree || !nextSplit(shown.state, cluster.id);
  if (!tree) split.title = "This model has no path that could split a cluster";
  return element("div", { class: "buttons tight" },
    button("Rename", () => rename(cluster, title), { "aria-label": `Rename ${name}` }), split, merge,
    button(locked ? "Unlock" : "Lock", () => { edit({ action: locked ? "unlock" : "lock", cluster: cluster.id }); say(`${locked ? "Unlocked" : "Locked"} ${name}`); },
      { "aria-label": `${locked ? "Unlock" : "Lock"} ${name}`, "aria-pressed": String(locked), title: "A locked cluster stays as it is when the number of clusters changes" }));
}

function rename(cluster, title) {
  const box = element("input", { type: "text", value: shown.state.names.get(cluster.id) ?? "", maxlength: 200, "aria-label": `New name of ${clusterName(cluster.id)}` });
  let done = false;
  const finish = (take) => {
    if (done) return;
    done = true;
    const text = box.value.trim();
    if (take && text && text !== shown.state.names.get(cluster.id)) edit({ action: "rename", cluster: cluster.id, name: text });
    else for (const listen of listeners) listen();
    document.querySelector(`[data-cluster="${cluster.id}"] h3`)?.focus();
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") finish(true);
    if (event.key === "Escape") finish(false);
  });
  box.addEventListener("blur", () => finish(true));
  title.replaceChildren(box);
  box.focus();
  box.select();
}

function cardsSection() {
  const grid = element("div", { class: "cards" });
  const rest = element("p", { class: "screen-only" });
  let most = FIRST_CARDS;
  listeners.push(() => {
    const cards = shown.clusters.map((cluster, place) => [cluster, place])
      .filter(([cluster]) => shown.selected === null || cluster.id === shown.selected).slice(0, most);
    grid.replaceChildren(...cards.map(([cluster, place]) => card(cluster, place)));
    rest.replaceChildren();
    if (shown.selected === null && shown.clusters.length > most) {
      rest.append(button(`Show all ${shown.clusters.length} clusters`, () => { most = Infinity; for (const listen of listeners) listen(); }));
    }
    if (shown.selected !== null) rest.append(button("Show all clusters", () => selectCluster(shown.selected)));
  });
  const sampled = data.source.rows_shown < data.source.rows_used ? ` Profiles are of the ${data.source.rows_shown.toLocaleString("en-US")} rows on this page; sizes count all rows.` : "";
  return section("clusters", "Clusters", `What sets each cluster apart from the other rows: this cluster in colour, all rows in grey.${sampled}`, grid, rest);
}
