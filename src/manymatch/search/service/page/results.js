// The results of each index: a column with a cut-off and a grid of cards.

import { byId, count, make, note, number, percent, picture } from "/page/dom.js";
import { go, link, state } from "/page/address.js";
import { examples, fileOf, thumbnailOf } from "/page/service.js";

const MOST = 1000;

/** The share of right results at a score: that of the result with the nearest score. */
const shareAt = (results, score) => {
  const known = results.filter((result) => typeof result.precision === "number");
  if (!known.length) return null;
  return known.reduce((a, b) => (Math.abs(b.score - score) < Math.abs(a.score - score) ? b : a)).precision;
};

/** How the page calls the shares of an answer, and what they count. */
const wordsOf = ({ right }) => {
  const of = right?.images ? ` of ${count(right.images)} validation images` : "";
  const [word, meaning] = {
    all: ["right", "are true"],
    judged: ["right", "are an own or judged pair"],
    own: ["own pair", "are a picture and its own caption; others may fit as well"],
  }[right?.pairs ?? "own"];
  return [word, `${word}: the share of the results with this score${of} that ${meaning}`, of];
};

const card = (index, result, rank, [word, meaning]) => {
  const shares = typeof result.precision === "number";
  return make("li", {},
    link({ item: result.id, of: index }, {
      class: "card",
      "data-id": result.id,
      "data-score": result.score,
      "data-index": index,
      title: result.path,
    },
    result.text ? make("span", { class: "text" }, result.text) : picture([thumbnailOf(index, result.id)], { alt: result.path, decoding: "async" }),
    make("span", { class: "line" },
      make("span", { class: "rank" }, make("span", { class: "hidden" }, "Rank "), String(rank)),
      make("span", { class: "score" }, make("span", { class: "hidden" }, "Score "), number(result.score)),
      shares && make("span", { class: "share", title: meaning }, `${percent(result.precision)} ${word}`))));
};

/** A slider that hides results with a lower score. */
const cutOff = (index, results, cards, [word, , of]) => {
  const scores = results.map((result) => result.score);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const output = make("output", {});
  const shown = make("span", { class: "note" });
  const least = state().least[index] ?? low;
  const slider = make("input", {
    type: "range", min: 0, max: 200, value: high > low ? Math.round((200 * (least - low)) / (high - low)) : 0,
    "aria-label": `Lowest score of ${index}`,
  });
  const apply = (lowest) => {
    let left = 0;
    for (const item of cards.children) {
      item.hidden = Number(item.firstChild.dataset.score) < lowest;
      left += !item.hidden;
    }
    const share = shareAt(results, lowest);
    output.textContent = `from ${number(lowest)}${share === null ? "" : `: ${percent(share)} ${word}${of}`}`;
    shown.textContent = `${left} of ${results.length} shown`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", () => {
    const lowest = low + ((high - low) * Number(slider.value)) / 200;
    apply(lowest);
    go({ [`least.${index}`]: slider.value === "0" ? null : Number(lowest.toFixed(6)) }, { replace: true });
  });
  apply(least);
  return make("div", { class: "cut-off" }, make("label", {}, "Cut-off ", slider), output, shown);
};

/** What the model did not understand of a text. */
const notes = ({ unknown, understood }) => {
  if (!understood) return [make("p", { class: "fault", role: "status" }, "The model knows no word of this query, so nothing is found.")];
  return unknown.length ? [make("p", { class: "note unknown", role: "status" }, `Not known to the model: ${unknown.join(", ")}`)] : [];
};

const column = ({ index, answer, error, description, items }) => {
  const head = make("header", {}, make("h2", {}, index), make("span", { class: "note" }, description));
  const section = make("section", { class: "column", "aria-label": `Results of ${index}`, "data-index": index }, head);
  if (error) {
    section.append(make("p", { class: "fault", role: "alert" }, error));
    return section;
  }
  const { results, exact, ms } = answer;
  const time = ms.parse + ms.encode + ms.search;
  head.append(make("span", { class: "note" }, `${time < 10 ? time.toFixed(1) : Math.round(time)} ms${exact ? ", exact" : ", not proven exact"}`));
  section.append(...notes(answer));
  if (!results.length) {
    if (answer.understood) section.append(note("Nothing fits the filter."));
    return section;
  }
  const saved = (event) => { event.target.href = fileOf(index, state()); }; // as the cut-off stands then
  if (!state().picture) head.append(make("a", { class: "note", href: fileOf(index, state()), download: "", onclick: saved }, "CSV"));
  const words = wordsOf(answer);
  const cards = make("ol", { class: results[0].text ? "cards texts" : "cards" }, results.map((result, i) => card(index, result, i + 1, words)));
  const shares = results.some((result) => typeof result.precision === "number");
  section.append(cutOff(index, results, cards, words), ...(shares ? [make("p", { class: "note" }, words[1])] : []), cards);
  const { k } = state();
  if (results.length === k && k < Math.min(items, MOST)) {
    section.append(make("button", { type: "button", class: "more", onclick: () => go({ k: Math.min(MOST, 2 * k) }) }, "More results"));
  }
  return section;
};

/** Show the answers or errors of several indexes side by side. */
export const showColumns = (answers) => {
  byId("results").replaceChildren(...answers.map(column));
};

/** Pictures of an index, each of which finds those that resemble it. */
export const wall = async (index) => {
  const found = await examples(index).catch(() => []); // The page is of use without them.
  return found.map((item) => link({ like: item.id, index }, { title: `More like ${item.path}` }, picture([thumbnailOf(index, item.id)], { alt: item.path })));
};

/** The cards that the cut-offs leave, in reading order. */
export const cardsShown = (within = byId("results")) => [...within.querySelectorAll("li:not([hidden]) > .card")];

/** The rank of an item in each index that shows the item. */
export const ranksOf = (id) =>
  [...document.querySelectorAll(".column")].flatMap((section) => {
    const place = [...section.querySelectorAll(".card")].findIndex((one) => one.dataset.id === id);
    return place < 0 ? [] : [[section.dataset.index, place + 1]];
  });

/** Mark an item in every column, so that its ranks can be compared. */
const mark = (event) => {
  const id = event.target.closest?.(".card")?.dataset.id;
  const several = document.querySelectorAll(".column").length > 1;
  for (const one of document.querySelectorAll(".card")) one.classList.toggle("same", several && one.dataset.id === id);
};
addEventListener("pointerover", mark);
addEventListener("focusin", mark);

/** The card that an arrow key leads to. */
export const neighbour = (from, key) => {
  const cards = cardsShown(from.closest(".column"));
  const at = cards.indexOf(from);
  if (key === "ArrowRight" || key === "ArrowLeft") {
    const next = cards[at + (key === "ArrowRight" ? 1 : -1)];
    return next ?? neighbouringColumn(from, key);
  }
  const down = key === "ArrowDown";
  const box = from.getBoundingClientRect();
  const rows = cards.map((one) => [one, one.getBoundingClientRect()]).filter(([, b]) => (down ? b.top > box.top + 4 : b.top < box.top - 4));
  const distance = ([, b]) => 10 * Math.abs(b.top - box.top) + Math.abs(b.left - box.left);
  return rows.length ? rows.reduce((a, b) => (distance(b) < distance(a) ? b : a))[0] : undefined;
};

const neighbouringColumn = (from, key) => {
  const section = from.closest(".column");
  const next = key === "ArrowRight" ? section.nextElementSibling : section.previousElementSibling;
  return next ? cardsShown(next)[0] : undefined;
};
