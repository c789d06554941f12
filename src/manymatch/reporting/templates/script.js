"use strict";

// Show one sample query of each section at a time; without this script all of them stand below each other.
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

  // The address names the query, so that it can be sent to somebody, but the page stays where it is.
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

// Date, commit, time and memory differ from run to run. The page holds none of them: `manymatch report` writes them to
// machine/machine.js beside the page, which a copy of the page alone does not have.
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
  made.textContent = `Made on ${machine.date}` + (machine.revision ? `, commit ${machine.revision.slice(0, 12)}` : "");
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
