// The explorer: the address holds the state, a view renders the state. This file has the queries.

import { byId, make, shape } from "/page/dom.js";
import { json } from "/page/service.js";
import { showPairs, showSpace } from "/page/explore_more.js";
import { showQuery } from "/page/explore_query.js";

export const MARKS = { own: ["✓", "own pair"], true: ["≈", "judged true"], wrong: ["✗", "not true"], unjudged: ["?", "not judged"] };
const WAYS = { t2i: "text → image", i2t: "image → text" };
const VIEWS = { queries: "Queries", unjudged: "Not judged", space: "Space" };
const SIZE = 50;
export let about = null;

// --- The address ------------------------------------------------------------------------------------

const given = () => new URLSearchParams(location.search);
export const param = (name, otherwise = "") => given().get(name) ?? otherwise;
export const way = () => (param("way") === "i2t" ? "i2t" : "t2i");

/** The address of the present state with some changes; null, "" and [] take a value out. */
export const changed = (changes) => {
  const values = given();
  for (const [name, value] of Object.entries(changes)) {
    values.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== "") values.append(name, one);
  }
  const text = values.toString();
  return text ? `/explore?${text}` : "/explore";
};

export const go = (changes, replace = false) => {
  history[replace ? "replaceState" : "pushState"](null, "", changed(changes));
  show();
};

/** A link within the page. */
export const link = (changes, attributes, ...children) => make("a", {
  ...attributes, href: changed(changes),
  onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(changes);
  },
}, ...children);

// --- What all views share ---------------------------------------------------------------------------

export const pictureOf = (row, small = true) => `/explore/images/${row}${small ? "?small=true" : ""}`;
export const asks = (path, values) => `/explore/${path}?${new URLSearchParams(Object.entries(values).flatMap(([name, value]) => [value].flat().filter((one) => one !== "").map((one) => [name, one])))}`;
export const thumb = (row, alt = "") => make("img", { src: pictureOf(row), alt, loading: "lazy", onerror: (event) => event.target.toggleAttribute("hidden", true) });
export const mark = (name) => make("span", { class: `mark ${name}`, title: MARKS[name][1] }, MARKS[name][0], make("span", { class: "hidden" }, ` ${MARKS[name][1]}`));
export const legend = () => make("p", { class: "legend" }, Object.keys(MARKS).map((name) => make("span", {}, mark(name), ` ${MARKS[name][1]}`)));
export const choice = (label, name, options, value, otherwise = "") => make("label", {}, label, make("select", {
  name, onchange: (event) => go({ [name]: event.target.value === otherwise ? null : event.target.value, page: null }),
}, options.map(([key, text]) => make("option", { value: key, selected: key === value }, text))));
export const table = (head, rows, attributes = {}) => make("div", { class: "sheet-table", tabindex: "0", role: "region", ...attributes },
  make("table", { class: "rows" }, make("thead", {}, make("tr", {}, head.flat())), make("tbody", {}, rows)));
export const methodNames = () => about.methods.map(({ name }) => name);

/** Buttons to the other pages of a list, and links to its files. Judged pairs leave the list, so the pairs that follow them
 * move to the present page. */
export const pager = (total, size, path, values) => {
  const page = Number(param("page", "0"));
  const last = Math.max(0, Math.ceil(total / size) - 1);
  const step = (label, text, to) => make("button", { type: "button", class: "plain", "aria-label": label, title: label, disabled: to < 0 || to > last, onclick: () => go({ page: (to > page && document.querySelector("[data-said]") ? page : to) || null }) }, text);
  const file = (kind) => make("a", { href: asks(path, { ...values, export: kind }), download: "" }, kind.toUpperCase());
  return make("div", { class: "pager" }, step("Previous page ([)", "←", page - 1),
    make("span", {}, total ? `${(page * size + 1).toLocaleString("en")}–${Math.min(total, (page + 1) * size).toLocaleString("en")} of ${total.toLocaleString("en")}` : "none"),
    step("Next page (])", "→", page + 1),
    make("span", { class: "end" }, "Save all as ", file("csv"), file("json")));
};

// --- The queries ------------------------------------------------------------------------------------

const filters = () => ({
  way: way(), word: param("word"), cut: param("cut", "1"), right: given().getAll("right"), wrong: given().getAll("wrong"),
  first: given().getAll("first"), sort: param("sort", "row"), descending: param("descending") === "1",
});

const filterForm = () => {
  const methods = [["", "any"], ...methodNames().map((name) => [name, name])];
  const [kind, method] = [param("first").split(":")[0], param("first").slice(param("first").indexOf(":") + 1)];
  const first = (mark, name) => go({ first: mark && name ? `${mark}:${name}` : null, page: null });
  const marks = make("select", { "aria-label": "Mark of the first item", onchange: (event) => first(event.target.value, method || methodNames()[0]) },
    [["", "anything"], ...Object.entries(MARKS).map(([name, [, text]]) => [name, text])].map(([key, text]) => make("option", { value: key, selected: key === kind }, text)));
  const names = make("select", { "aria-label": "Method of the first item", onchange: (event) => first(kind, event.target.value) },
    methodNames().map((name) => make("option", { value: name, selected: name === method }, name)));
  return make("form", { class: "filter", onsubmit: (event) => { event.preventDefault(); go({ word: byId("word").value.trim(), page: null }); byId("word").blur(); } },
    make("label", {}, "Words", make("input", { id: "word", type: "search", value: param("word"), maxlength: 200, placeholder: "two dogs", autocomplete: "off" })),
    choice("Right", "right", methods, param("right")), choice("wrong", "wrong", methods, param("wrong")),
    choice("within", "cut", [["1", "rank 1"], ["5", "ranks 1–5"], ["10", "ranks 1–10"]], param("cut", "1"), "1"),
    make("fieldset", {}, make("label", {}, "First item of", names), make("label", {}, "is", marks)),
    link({ word: null, right: null, wrong: null, first: null, cut: null, sort: null, descending: null, page: null }, {}, "Reset"));
};

/** The histogram of a method's ranks: one bar for each range. */
const bars = (counts, bounds, most) => {
  const names = counts.map((_, i) => (i ? `${bounds[i - 1] + 1}${i < bounds.length ? (bounds[i] > bounds[i - 1] + 1 ? `–${bounds[i]}` : "") : " and more"}` : "1"));
  const label = counts.map((count, i) => `rank ${names[i]}: ${count.toLocaleString("en")}`).join("; ");
  return make("td", { title: label.replaceAll("; ", "\n") }, shape("svg", { class: "bars", viewBox: "0 0 70 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    counts.map((count, i) => {
      const height = most ? (19 * count) / most + (count > 0) : 0;
      return shape("rect", { x: 10 * i + 0.5, y: 20 - height, width: 9, height, class: i === counts.length - 1 ? "far" : "near" });
    })));
};

const summary = ({ methods, bounds }) => {
  const most = Math.max(...methods.flatMap((one) => one.histogram));
  const judged = methods.some((one) => "judged_r1" in one);
  const value = (number) => make("td", {}, number === null || number === undefined ? "–" : number.toFixed(2));
  const head = ["Method", "R@1", "R@5", "R@10", judged && "R@1 with judged", "Ranks 1 · –5 · –10 · –20 · –50 · –100 · more"].filter(Boolean);
  return table(head.map((text, i) => make("th", { scope: "col", class: i ? "" : "first" }, text)),
    methods.map((one) => make("tr", {}, make("th", { scope: "row", class: "first" }, one.name), value(one.r1), value(one.r5), value(one.r10), judged && value(one.judged_r1), bars(one.histogram, bounds, most))),
    { class: "sheet-table facts-table", "aria-label": "Recall of the filtered queries" });
};

const sorted = (key, text) => {
  const is = param("sort", "row") === key;
  const down = param("descending") === "1";
  return make("th", { scope: "col", class: key === "row" ? "first" : "", "aria-sort": is ? (down ? "descending" : "ascending") : "none" },
    make("button", { type: "button", onclick: () => go({ sort: key === "row" ? null : key, descending: is && !down ? 1 : null, page: null }) }, text, is ? (down ? " ↓" : " ↑") : ""));
};

const rankCell = (row, name) => {
  const rank = row[`rank_${name}`];
  const judged = row[`judged_${name}`];
  const better = judged !== null && judged !== undefined && judged < rank;
  return make("td", { class: rank === 1 ? "one-true" : "" }, rank.toLocaleString("en"), " ", row[`first_${name}`] && mark(row[`first_${name}`]), better && make("small", {}, `judged ${judged}`));
};

const showQueries = async (place) => {
  const asked = filters();
  const found = await json(asks("queries", { ...asked, page: param("page", "0"), size: SIZE }));
  if (!found.warm && !found.fault) setTimeout(() => RENDER[param("view")] || document.activeElement?.id === "word" || show(), 800); // The files are still read.
  const names = methodNames();
  const objects = found.rows.some((row) => "objects" in row);
  const head = [sorted("row", asked.way === "t2i" ? "Caption" : "Image"), ...names.map((name) => sorted(`rank:${name}`, name)),
    sorted("spread", "differ"), sorted("positives", "true items"), sorted("words", "words"), objects && sorted("objects", "objects")];
  const rows = found.rows.map((row) => make("tr", {},
    make("td", { class: "first" }, link({ view: "query", row: row.row }, { class: "open" }, asked.way === "i2t" && thumb(row.row), make("span", {}, row.text))),
    names.map((name) => rankCell(row, name)),
    make("td", {}, `×${(Math.max(...names.map((name) => row[`rank_${name}`])) / Math.min(...names.map((name) => row[`rank_${name}`]))).toFixed(1)}`),
    make("td", {}, row.positives), make("td", {}, row.words), objects && make("td", {}, row.objects)));
  place(found.fault && make("p", { class: "fault", role: "alert" }, found.fault), filterForm(), summary(found), table(head, rows, { "aria-label": "Queries" }), pager(found.total, SIZE, "queries", asked), legend(),
    make("p", { class: "note" }, "A rank is that of the first annotated item. The sign behind a rank tells what the method's first item is. ",
      make("kbd", {}, "/"), " words, ", make("kbd", {}, "↑↓"), " rows, ", make("kbd", {}, "Enter"), " open, ", make("kbd", {}, "[ ]"), " pages, ", make("kbd", {}, "1 2 3"), " views, ", make("kbd", {}, "w"), " direction"));
};

// --- Showing the state ------------------------------------------------------------------------------

const RENDER = { queries: showQueries, query: showQuery, unjudged: showPairs, space: showSpace };
let turn = 0;

export const show = async () => {
  const mine = (turn += 1);
  const view = RENDER[param("view")] ? param("view") : "queries";
  byId("views").replaceChildren(...Object.entries(VIEWS).map(([key, text]) =>
    link({ view: key === "queries" ? null : key, page: null, row: null, sort: null }, { class: "tab", "aria-current": (key === view || (key === "queries" && view === "query")) && "page" }, text)));
  byId("ways").replaceChildren(make("span", { class: "pick" }, Object.entries(WAYS).map(([key, text]) =>
    make("button", { type: "button", "aria-pressed": String(key === way()), onclick: () => turnTo(key) }, text))));
  document.title = `${VIEWS[view] ?? "One query"} – ${about?.dataset ?? "ManyMatch"}`;
  const place = (...parts) => { if (mine === turn) byId("view").replaceChildren(...parts.flat().filter(Boolean)); };
  try {
    about ??= await json("/explore/about");
    byId("about").textContent = `${about.dataset}, ${about.split}: ${about.images.toLocaleString("en")} images, ${about.captions.toLocaleString("en")} captions, ${about.methods.length} methods`;
    await RENDER[view](place);
    say("");
  } catch (error) {
    if (mine === turn) say(error.message);
  }
};
const turnTo = (key) => go({ way: key === "t2i" ? null : key, page: null, ...(param("view") === "query" ? { view: null, row: null } : {}) });
export const say = (text) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("hidden", !text);
};
export const renew = (facts) => { about = facts; };

addEventListener("popstate", show);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, select")) {
    if (event.key === "Escape") event.target.blur?.();
    return;
  }
  const rows = [...document.querySelectorAll(".open")];
  const press = (label) => document.querySelector(`.pager [aria-label^="${label}"]:not(:disabled)`)?.click();
  const keys = {
    "/": () => byId("word")?.focus(), "[": () => press("Previous"), "]": () => press("Next"), w: () => turnTo(way() === "t2i" ? "i2t" : "t2i"),
    1: () => go({ view: null, page: null, row: null }), 2: () => go({ view: "unjudged", page: null }), 3: () => go({ view: "space", page: null }),
    Escape: () => param("view") === "query" && go({ view: null, row: null, why: null }),
    ArrowDown: () => rows[Math.min(rows.length - 1, rows.indexOf(document.activeElement) + 1)]?.focus(),
    ArrowUp: () => rows[Math.max(0, rows.indexOf(document.activeElement) - 1)]?.focus(),
  };
  if (!keys[event.key] || (event.key.startsWith("Arrow") && !rows.length)) return;
  event.preventDefault();
  keys[event.key]();
});
show();
