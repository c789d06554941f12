// Keys: an element with `data-key` is pressed by this key, and a text field with `data-key` is entered.

/** Press the button of a key. Where several cards have buttons with this key, the card in focus counts. */
const press = (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches?.("select, input:not([type=range], [type=checkbox])")) {
    if (key === "Escape") target.blur();
    return;
  }
  const rows = [...document.querySelectorAll(".open")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  const found = step ? rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(target) + step))]
    : [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]:not(:disabled)`)]
      .find((one) => one.closest("article")?.contains(target) ?? true);
  if (!found) return;
  event.preventDefault();
  if (step || found.matches("input")) found.focus();
  else found.click();
  found.select?.();
};

addEventListener("keydown", press);
