// One result: the picture large, what is known about it, and why it has its score.

import { byId, count, fill, make, note, number } from "/page/dom.js";
import { cleared, go, link, state } from "/page/address.js";
import { cardsShown, ranksOf } from "/page/results.js";
import { explanation, facts, pictureOf, thumbnailOf } from "/page/service.js";
import { canvas, reasons } from "/page/why.js";

const dialog = byId("detail");
let shown = null;

const close = () => go({ item: null, of: null });
dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
dialog.addEventListener("close", () => { if (state().item) close(); }); // A browser may close without asking.
dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });

/** Open the next or the previous result of the same index. */
const step = (by) => {
  const { item, of } = state();
  const cards = cardsShown().filter((card) => card.dataset.index === of);
  const next = cards[cards.findIndex((card) => card.dataset.id === item) + by];
  if (next) go({ item: next.dataset.id }, { replace: true });
};
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    event.preventDefault();
    step(event.key === "ArrowRight" ? 1 : -1);
  }
});

const button = (label, text, action) => make("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);

const ranks = (item, of) => {
  const places = ranksOf(item);
  if (places.length < 2) return places.filter(([index]) => index === of).map(([, rank]) => `rank ${rank}`).join("");
  return places.map(([index, rank]) => `${index}: rank ${rank}`).join(", ");
};

const scoreLine = (item, of) => {
  const card = cardsShown().find((one) => one.dataset.id === item && one.dataset.index === of);
  if (!card) return null;
  const share = card.querySelector(".share");
  return make("p", { class: "found" }, make("b", {}, number(Number(card.dataset.score))),
    ` ${ranks(item, of)}`, share && make("span", { class: "note", title: share.title }, ` At this score: ${share.textContent}.`));
};

const captionsOf = (known) => [known.text ?? [], known.caption ?? [], known.captions ?? []].flat().filter((text) => typeof text === "string");

const aboutItem = (content) => {
  const captions = captionsOf(content.facts ?? {});
  const others = Object.entries(content.facts ?? {}).filter(([name]) => !["text", "caption", "captions"].includes(name));
  const size = content.size ? [["size", `${count(Math.ceil(content.size / 1024))} KiB`]] : [];
  const changedOn = content.mtime_ns ? [["changed", new Date(content.mtime_ns / 1e6).toISOString().slice(0, 10)]] : [];
  return [
    captions.length > 0 && make("div", {}, make("h3", {}, "Captions"), make("ul", { class: "captions" }, captions.map((text) => make("li", {}, text)))),
    make("dl", { class: "facts" }, [...size, ...changedOn, ...others].map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))))),
  ].filter(Boolean);
};

/** `asked`: the picture that asked, and its address; of an index of texts, this picture is explained. */
const panel = ({ q, item, of }, isText, asked) => {
  const picture = isText ? asked?.address : pictureOf(of, item);
  const small = isText ? asked?.address : thumbnailOf(of, item);
  const { frame, image, draw } = canvas([picture, small]);
  const title = make("h2", { id: "title" }, "…");
  const about = make("div", { class: "about" });
  const why = make("div", { class: "why" });
  fill(about, facts(of, item).then((content) => {
    title.textContent = content.facts?.text ?? content.path;
    image.alt = isText ? "The picture that asked" : content.path;
    return content;
  }), aboutItem);
  const explained = isText ? asked : q;
  if (explained) {
    why.append(note("The model explains the score …"));
    fill(why, explanation(of, item, q, isText && asked.file), (answer) => reasons(answer, small, draw));
  } else {
    why.append(note("The model explains the score of a picture and a text."));
  }
  return [
    make("div", { class: "bar" },
      button("Previous result (left arrow)", "←", () => step(-1)),
      button("Next result (right arrow)", "→", () => step(1)),
      title,
      button("Close (Escape)", "×", close)),
    make("div", { class: "sheet" },
      make("div", {}, picture && frame, make("p", { class: "actions" },
        link({ ...cleared(), like: item }, {}, "More like this"),
        !isText && make("a", { href: picture, target: "_blank", rel: "noopener" }, "Open the picture"))),
      make("div", {}, scoreLine(item, of), explained && make("h3", {}, "Why"), why, about)),
  ];
};

/** Open, change or close the panel, as the address says. `isText`: the items of the index are texts. */
export const showDetail = (now, isText, asked) => {
  if (!now.item || !now.of) {
    shown = null;
    if (!dialog.open) return;
    const last = document.querySelector(".card[data-opened]");
    dialog.close();
    last?.focus();
    return;
  }
  const key = JSON.stringify([now.item, now.of, now.q, asked?.address]);
  if (key === shown) return;
  shown = key;
  for (const card of document.querySelectorAll(".card")) {
    card.toggleAttribute("data-opened", card.dataset.id === now.item && card.dataset.index === now.of);
  }
  const focused = dialog.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
  dialog.replaceChildren(...panel(now, isText, asked));
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(focused ? `[aria-label="${focused}"]` : "[aria-label^=Next]")?.focus();
};
