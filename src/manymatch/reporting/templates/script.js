"use strict";

// Show one query of each picker at a time. Without this script all queries are shown below each other.
for (const section of document.querySelectorAll("[data-queries]")) {
  const picker = section.querySelector(".picker");
  const links = [...picker.querySelectorAll("a")];
  const panels = [...section.querySelectorAll(".query")];
  const stepper = section.querySelector(".stepper");
  let current = 0;

  const show = (index) => {
    current = (index + panels.length) % panels.length;
    panels.forEach((panel, i) => { panel.hidden = i !== current; });
    links.forEach((link, i) => link.setAttribute("aria-current", String(i === current)));
    stepper.querySelector("span").textContent = `${current + 1} of ${panels.length}`;
    picker.scrollLeft = links[current].offsetLeft - (picker.clientWidth - links[current].offsetWidth) / 2;
  };

  // The address names the query, so that a link to the query can be sent. The page does not scroll.
  const choose = (index) => {
    show(index);
    history.replaceState(null, "", `#${panels[current].id}`);
  };
  const showAddressed = () => {
    const index = panels.findIndex((panel) => `#${panel.id}` === location.hash);
    if (index >= 0) {
      show(index);
      panels[index].scrollIntoView();
    }
  };

  if (panels.length === 0) continue;
  show(0);
  showAddressed();
  stepper.hidden = panels.length < 2;
  window.addEventListener("hashchange", showAddressed);
  links.forEach((link, i) => link.addEventListener("click", (event) => {
    event.preventDefault();
    choose(i);
  }));
  for (const button of stepper.querySelectorAll("button")) {
    button.addEventListener("click", () => choose(current + Number(button.dataset.step)));
  }
}

// Sort a table by a click on the head of a numeric column: first descending, then ascending. Empty cells come last.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 2) continue;
  const valueOf = (row, column) => row.cells[column].dataset.value;
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    if (!rows.some((row) => valueOf(row, column) !== undefined)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      const known = rows.filter((row) => valueOf(row, column) !== undefined);
      known.sort((a, b) => sign * (valueOf(a, column) - valueOf(b, column)));
      body.append(...known, ...rows.filter((row) => valueOf(row, column) === undefined));
    });
  });
}

// Date, commit, time and memory differ from run to run, so the page holds none of them. `manymatch report` writes them to
// machine/machine.js beside the page; a copy of the page alone does not have the file.
const machine = window.MANYMATCH_MACHINE;

const duration = (seconds) => {
  const rest = Math.round(seconds);
  if (rest < 60) return `${seconds.toPrecision(2)} s`;
  const parts = [[Math.floor(rest / 3600), "h"], [Math.floor(rest / 60) % 60, "min"], [rest % 60, "s"]];
  return parts.filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ");
};
const describe = ([stage, usage]) => {
  const facts = [
    usage.seconds === null ? "after an interruption" : duration(usage.seconds),
    `${Math.round(usage.peak_memory_mb).toLocaleString("en")} MiB`,
    usage.device,
    usage.host,
    usage.date.slice(0, 10),
    usage.git_revision ? `commit ${usage.git_revision.slice(0, 12)}` : "no commit",
  ];
  return `${stage} (${facts.join(", ")})`;
};

if (machine) {
  const made = document.getElementById("made");
  made.textContent = `Made on ${machine.date}${machine.revision ? `, commit ${machine.revision.slice(0, 12)}` : ""}.`;
  made.hidden = false;
  for (const list of document.querySelectorAll("[data-machine]")) {
    for (const [name, stages] of Object.entries(machine.results)) {
      const [dataset, preset] = name.split("/");
      if (dataset !== list.dataset.machine) continue;
      const item = document.createElement("li");
      item.textContent = `${preset}: ${Object.entries(stages).map(describe).join("; ")}`;
      list.append(item);
      list.hidden = false;
    }
  }
}
