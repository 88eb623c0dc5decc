
"use strict";
// Shows the event of a mark below its drawing, and marks and steps together. The
// page is whole without it: titles tell the same, and steps are links.
for (const timeline of document.querySelectorAll(".timeline")) {
  const panel = timeline.querySelector(".event");
  const hint = "Point at a mark, tap it or move to it with Tab: its event is shown here.";
  panel.textContent = hint;
  const steps = timeline.closest(".case").querySelectorAll(".story a[href^='#']");
  const lanes = timeline.querySelector(".lanes");
  const first = timeline.querySelector(".a-pair, .rejected-write");
  if (first) {
    const box = first.querySelector(".pair, .rejected").getBoundingClientRect();
    const middle = box.left + box.width / 2 - lanes.getBoundingClientRect().left;
    lanes.scrollLeft = middle - lanes.clientWidth / 2;
  }
  const light = (mark, on) => {
    mark.classList.toggle("lit", on);
    for (const step of steps) {
      if (step.hash === "#" + mark.id) step.parentElement.classList.toggle("lit", on);
    }
  };
  const show = (mark) => {
    panel.textContent = mark.getAttribute("aria-label") + "\n" + mark.dataset.row;
    light(mark, true);
  };
  for (const mark of timeline.querySelectorAll(".mark")) {
    for (const begin of ["mouseenter", "focus", "click"]) mark.addEventListener(begin, () => show(mark));
    for (const end of ["mouseleave", "blur"]) mark.addEventListener(end, () => light(mark, false));
  }
  for (const step of steps) {
    const mark = document.getElementById(step.hash.slice(1));
    if (!mark || !timeline.contains(mark)) continue;
    for (const begin of ["mouseenter", "focus"]) step.addEventListener(begin, () => show(mark));
    for (const end of ["mouseleave", "blur"]) step.addEventListener(end, () => light(mark, false));
  }
}
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
