// The page: the search box, pictures as queries, the keyboard, and what the address asks for.

import { cleared, go, state } from "/page/address.js";
import { showDetail } from "/page/detail.js";
import { byId, count, keys, make, note, say } from "/page/dom.js";
import "/page/keys.js";
import { cardsShown, neighbour, showColumns, wall } from "/page/results.js";
import { health, search, thumbnailOf } from "/page/service.js";

const POLL = 700;
const pictures = new Map(); // name -> { file, address }, of this visit
let served = [];
let asked = null; // what the shown results answer
let running = null;
let written = ""; // the last text that the page wrote to the search box

const isTexts = (name) => served.find((index) => index.name === name)?.side === "texts";
const chosen = (now) => {
  const known = now.indexes.filter((name) => served.some((index) => index.name === name));
  return known.length ? known : served.slice(0, 1).map((index) => index.name);
};

// --- Search ---------------------------------------------------------------------------------------

const describe = (name) => {
  const { method, items, side } = served.find((index) => index.name === name) ?? {};
  return [method !== name && method, items !== undefined && `${count(items)} ${side === "texts" ? "texts" : "pictures"}`].filter(Boolean).join(", ");
};

const answers = (now, names, file, signal) => Promise.all(names.map(async (index) => {
  const description = describe(index);
  const { items = Infinity } = served.find((one) => one.name === index) ?? {};
  try {
    return { index, description, items, answer: await search(index, now, file, signal) };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return { index, description, error: error.message };
  }
}));

const introduction = (wallOf) => make("div", { class: "introduction" },
  make("h1", {}, "Search pictures by what they show"),
  make("p", {}, "Write a sentence, or drop or paste a picture. Each result shows its score, and why it has this score."),
  make("ul", {}, served.map((index) => make("li", {}, make("b", {}, index.name), " ", make("span", {}, index.status === "ready" ? describe(index.name) : index.error ?? "loads its model …")))),
  note(keys("/", "search box,", "←↑↓→", "results,", "Enter", "open,", "Esc", "back")),
  wallOf);

/** The page before the first query; pictures of the first index follow when they are there. */
const introduce = async ([name]) => {
  const place = make("div", { class: "wall" });
  byId("results").replaceChildren(introduction(place));
  const { status, side } = served.find((index) => index.name === name) ?? {};
  if (status === "ready" && side === "images") place.replaceChildren(note("Or find pictures like one of these:"), ...await wall(name));
};

/** Bring the page to the state of the address. */
const show = async () => {
  const now = state();
  const names = chosen(now);
  const picture = now.picture ? pictures.get(now.picture) : null;
  showForm(now, names, picture);
  document.title = now.q || now.picture || now.like ? `${now.q || now.picture || "similar pictures"} – ManyMatch` : "ManyMatch";
  const key = JSON.stringify([now.q, now.like, now.picture, names, now.where, now.k, names.map((name) => served.find((index) => index.name === name)?.status)]);
  if (key !== asked) {
    asked = key;
    running?.abort();
    running = new AbortController();
    if (now.picture && !picture) {
      say(`The picture “${now.picture}” is no longer here. Drop it again.`);
      byId("results").replaceChildren();
    } else if (!now.q && !now.like && !now.picture) {
      say("");
      introduce(names);
    } else if (!(await run(now, names, picture?.file, running.signal))) {
      return;
    }
  }
  showDetail(now, isTexts(now.of), picture);
};

/** Search and show the results; false if another search began meanwhile. */
const run = async (now, names, file, signal) => {
  document.body.toggleAttribute("data-busy", true);
  try {
    const found = await answers(now, names, file, signal);
    if (signal.aborted) return false;
    showColumns(found);
    const counts = found.filter((one) => one.answer).map((one) => `${one.answer.results.length} results of ${one.index}`);
    say(counts.join(", "), { aloud: true });
  } catch {
    return false;
  }
  document.body.toggleAttribute("data-busy", false);
  return true;
};

// --- The form -------------------------------------------------------------------------------------

const showForm = (now, names, picture) => {
  if (now.q !== written) byId("q").value = written = now.q; // A text that is not sent yet stays.
  byId("where").value = now.where;
  const place = byId("asked");
  const source = picture?.address ?? (now.like && !isTexts(names[0]) && thumbnailOf(names[0], now.like));
  place.hidden = !source;
  place.replaceChildren();
  if (source) {
    place.append(make("img", { src: source, alt: picture ? now.picture : "The picture that results resemble" }),
      make("button", { type: "button", "aria-label": "Remove the picture", title: "Remove the picture", onclick: () => go(cleared()) }, "×"));
  }
  for (const box of document.querySelectorAll("#indexes input")) box.checked = names.includes(box.value);
};

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const q = byId("q").value.trim();
  const where = byId("where").value.trim();
  go(q ? { ...cleared(), q, where } : { where });
  byId("q").blur();
});

const showIndexes = () => {
  const group = byId("indexes");
  group.hidden = served.length < 2;
  group.replaceChildren(group.firstElementChild, ...served.map(({ name }) =>
    make("label", { class: "chip" }, make("input", { type: "checkbox", value: name, onchange: choose }), name)));
};

const choose = (event) => {
  const names = [...document.querySelectorAll("#indexes input:checked")].map((box) => box.value);
  if (!names.length) event.target.checked = true; // One index stays.
  else go({ index: names, item: null, of: null });
};

// --- A picture as the query -----------------------------------------------------------------------

const ask = (file) => {
  if (!file) return;
  let name = file.name || "picture";
  for (let i = 2; pictures.has(name); i += 1) name = `${i} ${file.name}`;
  pictures.set(name, { file, address: URL.createObjectURL(file) });
  go({ ...cleared(), picture: name });
};

byId("by-picture").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (event) => {
  ask(event.target.files[0]);
  event.target.value = "";
});
addEventListener("paste", (event) => {
  const [file] = event.clipboardData?.files ?? [];
  if (file) { event.preventDefault(); ask(file); }
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  byId("drop").hidden = !event.dataTransfer?.types.includes("Files");
});
addEventListener("dragleave", (event) => { if (!event.relatedTarget) byId("drop").hidden = true; });
addEventListener("drop", (event) => {
  event.preventDefault();
  byId("drop").hidden = true;
  ask(event.dataTransfer?.files[0]);
});

// --- The keyboard and the history ---------------------------------------------------------

addEventListener("keydown", (event) => {
  if (byId("detail").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const { activeElement } = document;
  const card = activeElement.closest?.(".card");
  if (event.key === "Escape" && card) {
    byId("q").focus();
  } else if (event.key.startsWith("Arrow") && card) {
    event.preventDefault();
    neighbour(card, event.key)?.focus();
  } else if (event.key === "ArrowDown" && [document.body, byId("q"), byId("results")].includes(activeElement)) {
    event.preventDefault();
    cardsShown()[0]?.focus();
  }
});

addEventListener("popstate", show);
addEventListener("addresschange", show);

// --- Start: the service may still load its models ---------------------------------------------------

const start = async () => {
  try {
    served = (await health()).indexes;
  } catch (error) {
    say(error.message);
    setTimeout(start, 3 * POLL);
    return;
  }
  if (byId("indexes").querySelectorAll("input").length !== served.length) showIndexes();
  await show();
  if (served.some((index) => index.status === "loading")) setTimeout(start, POLL);
};
start();
