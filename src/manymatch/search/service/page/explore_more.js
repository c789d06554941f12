// Pairs that nobody judged, and the space: a map of all items, and hubs.

import { make } from "/page/dom.js";
import { json } from "/page/service.js";
import { about, asks, choice, count, form, go, keys, link, methodNames, note, pager, param, picture, renew, saved, say, select, table, way } from "/page/explore.js";

const SIZE = 24;
const NAME = "manymatch.annotator";

// --- Not judged ---------------------------------------------------------------------------------------

const ANSWERS = { y: ["Yes", true, "true"], n: ["No", false, "false"], s: ["Skip", null, "skipped"] };

const judge = async (card, key) => {
  const [, relevant, word] = ANSWERS[key];
  const annotator = localStorage.getItem(NAME);
  if (!annotator) { say("Write your name first: it stands beside each judgment."); document.querySelector("#annotator").focus(); return; }
  const body = JSON.stringify({ image: Number(card.dataset.image), caption: Number(card.dataset.caption), relevant, annotator });
  try {
    renew(await json("/explore/judgments", { method: "POST", headers: { "content-type": "application/json" }, body }));
  } catch (error) {
    say(error.message);
    return;
  }
  say("");
  card.dataset.said = word;
  card.querySelector(".said").textContent = `You said: ${word}`;
  const open = [...document.querySelectorAll(".pair")];
  (open.slice(open.indexOf(card) + 1).find((one) => !one.dataset.said) ?? card).focus();
  document.querySelector("#agreement").replaceChildren(...agreement());
};

const agreement = () => [
  note(Object.entries(about.annotators).map(([name, pairs]) => `${name}: ${count(pairs)} pairs`).join(", ") || "Nobody judged a pair here yet."),
  ...about.agreement.map(({ annotators, agreed, pairs, kappa }) =>
    note(`${annotators.join(" and ")} agree on ${Math.round(100 * agreed)}% of ${pairs} pairs; Cohen's kappa ${kappa === null ? "is not defined, because both gave one answer only" : kappa.toFixed(2)}.`)),
];

const pairCard = (row) => {
  const press = (key) => make("button", { type: "button", title: `Key ${key}`, onclick: () => judge(card, key) }, ANSWERS[key][0]);
  const typed = (event) => {
    if (!(event.key in ANSWERS) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    judge(card, event.key);
  };
  const card = make("article", { class: "pair", tabindex: "0", "data-image": row.image, "data-caption": row.caption, onkeydown: typed },
    picture(row.image, true, { alt: row.image_id }), make("p", { class: "text" }, row.text),
    note(`${row.methods} of ${about.methods.length} methods; a higher score than ${(100 * row.share).toFixed(1)}% of the annotated pairs. `, link({ view: "query", row: way() === "t2i" ? row.caption : row.image }, {}, "Ranks")),
    make("span", { class: "pick" }, Object.keys(ANSWERS).map(press)), make("p", { class: "said note" }));
  return card;
};

export const showPairs = async (place) => {
  const annotator = localStorage.getItem(NAME) ?? "";
  const asked = { way: way(), k: param("k", "1"), kind: param("kind", "new"), annotator };
  const found = await json(asks("unjudged", { ...asked, page: param("page", "0"), size: SIZE }));
  const named = ({ target }) => { localStorage.setItem(NAME, target.value.trim()); go({}, true); };
  place(make("h2", {}, "Does the caption fit the picture?"),
    note(about.complete ? "Every true pair of this data set is known, so there is nothing to judge."
      : "Pairs that methods rank first and that nobody judged: what most methods agree on comes first, then high scores."),
    form(() => {}, make("label", {}, "Annotator", make("input", { id: "annotator", value: annotator, maxlength: 60, placeholder: "your-name", title: "Letters, digits and . _ -", autocomplete: "off", onchange: named })),
      choice("Among the first", "k", ["1", "3", "5", "10"].map((k) => [k, k]), "1"),
      choice("Pairs", "kind", [["new", "that nobody judged"], ["second", "that only others judged"]], "new"),
      make("span", { class: "note" }, keys("y", "yes", "n", "no", "s", "skip"))),
    make("div", { class: "pairs" }, found.rows.map(pairCard)), pager(found.total, SIZE, "unjudged", asked),
    make("h3", {}, "Judgments"), make("div", { id: "agreement" }, agreement()),
    note("Judgments are written to ", make("code", {}, `judgments/${about.dataset}.csv`), ". The next evaluation counts a pair as true or false as most annotators say."));
  document.querySelector(".pair")?.focus({ preventScroll: true });
};

// --- The space ------------------------------------------------------------------------------------------

const COLOURS = { image: "#3d8fe0", caption: "#dd7030" }; // seen on light and on dark

/** Values as places between two borders of the map. */
const scaled = (values, from, to) => {
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  return values.map((value) => from + ((to - from) * (value - low)) / (high - low || 1));
};

/** The map of a method; `tell` is called with the item below the pointer, and `open` with an item that is clicked. */
const mapOf = async (method, tell, open) => {
  if (!about.methods.find((one) => one.name === method).map) return note("Scores without embeddings have no map.");
  const items = await json(asks("map", { method }));
  const [xs, ys, total] = [scaled(items.x, 10, 1190), scaled(items.y, 890, 10), items.x.length];
  const item = (i) => Object.fromEntries(Object.entries(items).map(([name, values]) => [name, values[i]]));
  let last = -1;
  const point = ({ clientX, clientY, currentTarget }) => {
    const box = currentTarget.getBoundingClientRect();
    const [px, py] = [((clientX - box.left) * 1200) / box.width, ((clientY - box.top) * 900) / box.height];
    let [nearest, least] = [-1, 900];
    for (let i = 0; i < total; i += 1) {
      const distance = (xs[i] - px) ** 2 + (ys[i] - py) ** 2;
      if (distance < least) [nearest, least] = [i, distance];
    }
    if (nearest >= 0 && nearest !== last) tell(item((last = nearest)));
  };
  const drawn = make("canvas", { width: 1200, height: 900, tabindex: "0", role: "img", "aria-label": `The plane of ${method}: ${total} images and captions`, onpointermove: point, onclick: () => last >= 0 && open(item(last)) });
  const pen = drawn.getContext("2d");
  pen.globalAlpha = Math.max(0.35, Math.min(0.85, 2000 / total));
  for (const [kind, size] of [["caption", 3], ["image", 5]]) {
    pen.fillStyle = COLOURS[kind];
    items.kind.forEach((own, i) => own === kind && pen.fillRect(xs[i] - size / 2, ys[i] - size / 2, size, size));
  }
  return drawn;
};

export const showSpace = async (place) => {
  const names = methodNames();
  const method = names.includes(param("of")) ? param("of") : (about.methods.find((one) => one.map) ?? about.methods[0]).name;
  const asked = { way: way() };
  const found = await json(asks("hubs", { ...asked, page: param("page", "0"), size: SIZE }));
  const told = make("div", { role: "status" }, note("Point at the map to see an item; click to open it as a query."));
  const tell = ({ kind, id, image, text }) => told.replaceChildren(note(`${kind} ${id}`), picture(image), make("p", { class: "text" }, text));
  const open = ({ kind, row }) => ({ view: "query", way: kind === "image" ? "i2t" : null, row, page: null });
  const dot = (name) => { const one = make("span", { class: "dot" }, `${name}s`); one.style.setProperty("--dot", COLOURS[name]); return one; };
  const side = way() === "t2i" ? "image" : "caption";
  const hub = ({ row, text }) => link(open({ kind: side, row }), { class: "open" }, side === "image" && picture(row), make("span", {}, text));
  place(form(() => {}, make("label", {}, "The space of", select({}, names.map((name) => [name, name]), method, (of) => go({ of }))),
    make("span", { class: "legend" }, dot("image"), dot("caption")), make("span", { class: "note" }, "the two largest principal components"), saved("map", { method })),
  make("div", { class: "space" }, await mapOf(method, tell, (item) => go(open(item))), told),
  make("h2", {}, `Hubs: ${side}s in too many first tens`),
  table("Hubs of each method", [["Method", ({ name }) => name], ["skewness", (one) => one.skewness.toFixed(2)], ["in no first ten", (one) => `${one.never.toFixed(1)}%`], ["most", ({ most }) => count(most)]], found.methods, "facts-table"),
  table("First tens that have the item", [[side === "image" ? "Image" : "Caption", hub], ...names.map((name) => [name, (row) => count(row[`tens_${name}`])])], found.rows),
  pager(found.total, SIZE, "hubs", asked));
};
