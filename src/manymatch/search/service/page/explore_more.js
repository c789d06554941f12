// Pairs that nobody judged, and the space: a map of all items, and hubs.

import { go, link, param, way } from "/page/address.js";
import { byId, count, keys, make, note, say } from "/page/dom.js";
import { about, ask, asQuery, choice, field, listed, methods, picks, saved, small, table } from "/page/explore_parts.js";
import { json, upload } from "/page/service.js";

const NAME = "manymatch.annotator";

// --- Not judged ---------------------------------------------------------------------------------------

const ANSWERS = { y: ["Yes", true, "true"], n: ["No", false, "false"], s: ["Skip", null, "skipped"] };

const judge = async (card, { image, caption }, key) => {
  const [, relevant, word] = ANSWERS[key];
  const annotator = localStorage.getItem(NAME);
  if (!annotator) {
    say("Write your name first: it stands beside each judgment.");
    byId("annotator").focus();
    return;
  }
  const vote = new Blob([JSON.stringify({ image, caption, relevant, annotator })], { type: "application/json" });
  const answer = await json("/explore/judgments", upload(vote)).catch((error) => say(error.message));
  if (!answer) return;
  Object.assign(about, answer);
  say("");
  card.dataset.said = word;
  card.querySelector(".said").textContent = `You said: ${word}`;
  const open = [...document.querySelectorAll(".pair")];
  (open.slice(open.indexOf(card) + 1).find((one) => !one.dataset.said) ?? card).focus();
  byId("agreement").replaceChildren(...agreement());
};

const agreement = () => [
  note(Object.entries(about.annotators).map(([name, pairs]) => `${name}: ${count(pairs)} pairs`).join(", ")
    || "Nobody judged a pair here yet."),
  ...about.agreement.map(({ annotators, agreed, pairs, kappa }) =>
    note(`${annotators.join(" and ")} agree on ${Math.round(100 * agreed)}% of ${pairs} pairs; Cohen's kappa `,
      kappa === null ? "is not defined, because both gave one answer only." : `${kappa.toFixed(2)}.`)),
];

const pair = (row) => {
  const card = make("article", { class: "pair", tabindex: "0", "data-caption": row.caption },
    small(row.image, { alt: row.image_id }), make("p", { class: "text" }, row.text),
    note(`${row.methods} of ${about.methods.length} methods; a higher score than ${(100 * row.share).toFixed(1)}% of the annotated pairs. `,
      link(asQuery(way() === "t2i" ? row.caption : row.image), {}, "Ranks")),
    picks(Object.entries(ANSWERS).map(([key, [text]]) => [key, text, key]), null, (key) => judge(card, row, key)),
    make("p", { class: "said note" }));
  return card;
};

export const showPairs = async (place) => {
  const annotator = localStorage.getItem(NAME) ?? "";
  const [{ rows }, pager] = await listed("unjudged", 24, { annotator });
  place(make("h2", {}, "Does the caption fit the picture?"),
    note(about.complete ? "Every true pair of this data set is known, so there is nothing to judge."
      : "Pairs that methods rank first and that nobody judged: what most methods agree on comes first, then high scores."),
    make("div", { class: "settings" },
      field("Annotator", { id: "annotator", value: annotator, maxlength: 60, placeholder: "your-name", title: "Letters, digits and . _ -" },
        (name) => { localStorage.setItem(NAME, name); go({}); }),
      choice("Among the first", "k", [["1"], ["3"], ["5"], ["10"]], "1"),
      choice("Pairs", "kind", [["new", "that nobody judged"], ["second", "that only others judged"]], "new"),
      make("span", { class: "note" }, keys("y", "yes", "n", "no", "s", "skip"))),
    make("div", { class: "pairs" }, rows.map(pair)), pager,
    make("h3", {}, "Judgments"), make("div", { id: "agreement" }, agreement()),
    note("Judgments are written to ", make("code", {}, `judgments/${about.dataset}.csv`),
      ". The next evaluation counts a pair as true or false as most annotators say."));
  document.querySelector(".pair")?.focus({ preventScroll: true });
};

// --- The space ------------------------------------------------------------------------------------------

const COLOURS = { caption: ["#dd7030", 3], image: ["#3d8fe0", 5] }; // seen on light and on dark; the sides of the points

/** Values as places between two borders of the map. */
const scaled = (all, from, to) => {
  const [low, high] = all.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  return all.map((value) => from + ((to - from) * (value - low)) / (high - low || 1));
};

/** The map of items; `tell` is called with the item below the pointer, and `open` with an item that is clicked. */
const mapOf = (items, tell, open) => {
  const [xs, ys] = [scaled(items.map(({ x }) => x), 10, 1190), scaled(items.map(({ y }) => y), 890, 10)];
  const nearest = ({ offsetX, offsetY, target }) => {
    const [x, y] = [(1200 * offsetX) / target.clientWidth, (900 * offsetY) / target.clientHeight];
    const distance = (i) => (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
    return items[xs.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0)];
  };
  const drawn = make("canvas", {
    width: 1200, height: 900, tabindex: "0", role: "img", "aria-label": `The plane of ${count(items.length)} images and captions`,
    onpointermove: (event) => tell(nearest(event)), onclick: (event) => open(nearest(event)),
  });
  const pen = drawn.getContext("2d");
  pen.globalAlpha = Math.max(0.35, Math.min(0.85, 2000 / items.length));
  for (const [kind, [colour, size]] of Object.entries(COLOURS)) {
    pen.fillStyle = colour;
    items.forEach((item, i) => item.kind === kind && pen.fillRect(xs[i] - size / 2, ys[i] - size / 2, size, size));
  }
  return drawn;
};

export const showSpace = async (place) => {
  const method = about.methods.find((one) => one.name === param("method")) ?? about.methods.find((one) => one.map) ?? about.methods[0];
  const [{ rows, methods: facts }, pager] = await listed("hubs", 24);
  const items = method.map && await ask("map", { method: method.name, export: "json" });
  const open = ({ kind, row }) => go(asQuery(row, kind === "image" ? "i2t" : "t2i"));
  const told = make("div", { role: "status" }, note("Point at the map to see an item; click to open it as a query."));
  const tell = ({ kind, id, image, text }) => told.firstChild.textContent !== `${kind} ${id}`
    && told.replaceChildren(note(`${kind} ${id}`), small(image), make("p", { class: "text" }, text));
  const [side, title, asking] = way() === "t2i" ? ["image", "Image", "i2t"] : ["caption", "Caption", "t2i"];
  const hub = ({ row, text }) =>
    link(asQuery(row, asking), { class: "open" }, side === "image" && small(row), make("span", { class: "says" }, text));
  place(make("div", { class: "settings" }, choice("The space of", "method", methods().map((name) => [name]), method.name),
    Object.entries(COLOURS).map(([kind, [dot]]) => make("span", { class: "dot", "--dot": dot }, `${kind}s`)),
    make("span", { class: "note" }, "the two largest principal components"), saved("map", { method: method.name })),
  make("div", { class: "space" },
    items ? mapOf(items, tell, open) : note("Scores without embeddings have no map."), told),
  make("h2", {}, `Hubs: ${side}s in too many first tens`),
  table("Hubs of each method", [["Method", ({ name }) => name], ["skewness", (one) => one.skewness.toFixed(2)],
    ["in no first ten", (one) => `${one.never.toFixed(1)}%`], ["most", ({ most }) => count(most)]], facts, "facts-table"),
  table("First tens that have the item",
    [[title, hub], ...methods().map((name) => [name, (row) => count(row[`tens_${name}`]), `tens_${name}`])], rows),
  pager);
};
