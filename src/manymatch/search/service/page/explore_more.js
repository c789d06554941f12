// Pairs that nobody judged, and the space: a map of all items, and hubs.

import { make } from "/page/dom.js";
import { json } from "/page/service.js";
import { about, asks, choice, go, link, methodNames, pager, param, pictureOf, renew, say, table, thumb, way } from "/page/explore.js";

const SIZE = 24;
const NAME = "manymatch.annotator";

// --- Not judged ---------------------------------------------------------------------------------------

const KEYS = { y: true, n: false, s: null };
const SAID = { y: "true", n: "false", s: "skipped" };

const judge = async (card, key) => {
  const annotator = localStorage.getItem(NAME) ?? "";
  if (!annotator) { say("Write your name first: it stands beside each judgment."); document.querySelector("#annotator").focus(); return; }
  const { image, caption } = card.dataset;
  const body = JSON.stringify({ image: Number(image), caption: Number(caption), relevant: KEYS[key], annotator });
  try {
    renew(await json("/explore/judgments", { method: "POST", headers: { "content-type": "application/json" }, body }));
    say("");
  } catch (error) {
    say(error.message);
    return;
  }
  card.dataset.said = SAID[key];
  card.querySelector(".said").textContent = `You said: ${SAID[key]}`;
  const open = [...document.querySelectorAll(".pair")];
  (open.slice(open.indexOf(card) + 1).find((one) => !one.dataset.said) ?? card).focus();
  document.querySelector("#agreement").replaceChildren(...agreement());
};

const agreement = () => [
  make("p", { class: "note" }, Object.entries(about.annotators).map(([name, count]) => `${name}: ${count.toLocaleString("en")} pairs`).join(", ") || "Nobody judged a pair here yet."),
  ...about.agreement.map((one) => make("p", { class: "note" },
    `${one.annotators.join(" and ")} agree on ${Math.round(100 * one.agreed)}% of ${one.pairs} pairs; Cohen's kappa ${one.kappa === null ? "is not defined, because both gave one answer only" : one.kappa.toFixed(2)}.`)),
];

const pairCard = (row) => {
  const card = make("article", { class: "pair", tabindex: "0", "data-image": row.image, "data-caption": row.caption },
    thumb(row.image, row.image_id), make("p", { class: "text" }, row.text),
    make("p", { class: "note" }, `${row.methods} of ${about.methods.length} methods; a higher score than ${(100 * row.share).toFixed(1)}% of the annotated pairs. `,
      link({ view: "query", row: way() === "t2i" ? row.caption : row.image }, {}, "Ranks")),
    make("span", { class: "pick" }, [["y", "Yes"], ["n", "No"], ["s", "Skip"]].map(([key, text]) => make("button", { type: "button", title: `Key ${key}`, onclick: () => judge(card, key) }, text))),
    make("p", { class: "said note" }));
  card.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    judge(card, event.key);
  });
  return card;
};

export const showPairs = async (place) => {
  const annotator = localStorage.getItem(NAME) ?? "";
  const asked = { way: way(), k: param("k", "1"), kind: param("kind", "new"), annotator };
  const found = await json(asks("unjudged", { ...asked, page: param("page", "0"), size: SIZE }));
  const name = make("input", { id: "annotator", value: annotator, maxlength: 60, placeholder: "your-name", title: "Letters, digits and . _ -", autocomplete: "off", onchange: ({ target }) => { localStorage.setItem(NAME, target.value.trim()); go({}, true); } });
  place(make("h2", {}, "Does the caption fit the picture?"),
    make("p", { class: "note" }, about.complete ? "Every true pair of this data set is known, so there is nothing to judge."
      : "Pairs that methods rank first and that nobody judged: what most methods agree on comes first, then high scores."),
    make("form", { class: "filter", onsubmit: (event) => event.preventDefault() }, make("label", {}, "Annotator", name),
      choice("Among the first", "k", ["1", "3", "5", "10"].map((k) => [k, k]), param("k", "1"), "1"),
      choice("Pairs", "kind", [["new", "that nobody judged"], ["second", "that only others judged"]], param("kind", "new"), "new"),
      make("span", { class: "note" }, make("kbd", {}, "y"), " yes ", make("kbd", {}, "n"), " no ", make("kbd", {}, "s"), " skip")),
    make("div", { class: "pairs" }, found.rows.map(pairCard)), pager(found.total, SIZE, "unjudged", asked),
    make("h3", {}, "Judgments"), make("div", { id: "agreement" }, agreement()),
    make("p", { class: "note" }, "They are in ", make("code", {}, `judgments/${about.dataset}.csv`), ". The next evaluation counts a pair as true or false as most annotators say. ",
      make("a", { href: "/explore/judgments", download: "" }, "Save as CSV")));
  document.querySelector(".pair")?.focus({ preventScroll: true });
};

// --- The space ------------------------------------------------------------------------------------------

const COLOURS = { image: "#3d8fe0", caption: "#dd7030" }; // seen on light and on dark

const mapOf = async (method, tell) => {
  if (!about.methods.find((one) => one.name === method).map) return make("p", { class: "note" }, "Scores without embeddings have no map.");
  const points = new DataView(await (await fetch(asks("map", { method }))).arrayBuffer());
  const count = points.byteLength / 4;
  const canvas = make("canvas", { width: 1200, height: 900, tabindex: "0", role: "img", "aria-label": `The plane of ${method}: ${count} images and captions` });
  const at = (i) => [10 + (1180 * points.getUint16(4 * i, true)) / 65535, 890 - (880 * points.getUint16(4 * i + 2, true)) / 65535];
  const pen = canvas.getContext("2d");
  pen.globalAlpha = Math.max(0.35, Math.min(0.85, 2000 / count));
  const draw = (from, to, colour, size) => { pen.fillStyle = colour; for (let i = from; i < to; i += 1) { const [x, y] = at(i); pen.fillRect(x - size / 2, y - size / 2, size, size); } };
  draw(about.images, count, COLOURS.caption, 3);
  draw(0, about.images, COLOURS.image, 5);
  let last = -1;
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect();
    const [px, py] = [((event.clientX - box.left) * 1200) / box.width, ((event.clientY - box.top) * 900) / box.height];
    let [best, distance] = [-1, 900];
    for (let i = 0; i < count; i += 1) { const [x, y] = at(i); const d = (x - px) ** 2 + (y - py) ** 2; if (d < distance) [best, distance] = [i, d]; }
    return best;
  };
  canvas.addEventListener("pointermove", (event) => {
    const found = nearest(event);
    if (found >= 0 && found !== last) { last = found; tell(found); }
  });
  canvas.addEventListener("click", () => last >= 0 && go(last < about.images ? { view: "query", way: "i2t", row: last, page: null } : { view: "query", way: null, row: last - about.images, page: null }));
  return canvas;
};

export const showSpace = async (place) => {
  const method = methodNames().includes(param("of")) ? param("of") : (about.methods.find((one) => one.map) ?? about.methods[0]).name;
  const asked = { way: way() };
  const found = await json(asks("hubs", { ...asked, page: param("page", "0"), size: SIZE }));
  const told = make("div", { role: "status" }, make("p", { class: "note" }, "Point at the map to see an item; click to open it as a query."));
  const tell = async (i) => {
    const side = i < about.images ? "image" : "caption";
    const one = await json(asks("item", { side, row: side === "image" ? i : i - about.images }));
    told.replaceChildren(make("p", { class: "note" }, `${side} ${one.id}`), make("img", { src: pictureOf(one.image), alt: "" }), make("p", { class: "text" }, one.text));
  };
  const dot = (name, text) => { const one = make("span", { class: "dot" }, text); one.style.setProperty("--dot", COLOURS[name]); return one; };
  const names = methodNames();
  const opens = (row) => link({ view: "query", way: way() === "t2i" ? "i2t" : null, row: row.row, page: null }, { class: "open" }, way() === "t2i" && thumb(row.row), make("span", {}, row.text));
  const word = way() === "t2i" ? "images" : "captions";
  place(make("form", { class: "filter", onsubmit: (event) => event.preventDefault() }, choice("The space of", "of", names.map((name) => [name, name]), method),
    make("span", { class: "legend" }, dot("image", "images"), dot("caption", "captions")), make("span", { class: "note" }, "the two largest principal components; ", ["csv", "json"].flatMap((kind) => [make("a", { href: asks("map", { method, export: kind }), download: "" }, kind.toUpperCase()), " "]))),
  make("div", { class: "space" }, await mapOf(method, tell), told),
  make("h2", {}, `Hubs: ${word} in too many first tens`),
  table(["Method", "skewness", "in no first ten", "most"].map((text, i) => make("th", { scope: "col", class: i ? "" : "first" }, text)),
    found.methods.map((one) => make("tr", {}, make("th", { scope: "row", class: "first" }, one.name), make("td", {}, one.skewness.toFixed(2)), make("td", {}, `${one.never.toFixed(1)}%`), make("td", {}, one.most))), { class: "sheet-table facts-table", "aria-label": "Hubs of each method" }),
  table([make("th", { scope: "col", class: "first" }, word === "images" ? "Image" : "Caption"), names.map((name) => make("th", { scope: "col" }, name))],
    found.rows.map((row) => make("tr", {}, make("td", { class: "first" }, opens(row)), names.map((name) => make("td", {}, row[`tens_${name}`].toLocaleString("en"))))), { "aria-label": "First tens that have the item" }),
  pager(found.total, SIZE, "hubs", asked));
};
