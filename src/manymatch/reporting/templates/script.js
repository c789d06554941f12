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
