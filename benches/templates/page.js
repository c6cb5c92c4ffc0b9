// Shows the figures of all curves at the percentile or the rate that is pointed at, or reached with the arrow keys.
"use strict";
for (const stage of document.querySelectorAll("[data-curves]")) {
  const data = JSON.parse(stage.dataset.curves);
  const tip = stage.querySelector(".tip");
  const last = data.names.length - 1;
  // Where on the axis each name stands: evenly, unless it is said.
  const places = data.places || data.names.map((_, step) => step / last);
  let at = Math.round(last / 2);

  const shown = () => [...stage.querySelectorAll("svg.chart")].find((svg) => svg.clientWidth > 0);

  function show(step) {
    const svg = shown();
    if (!svg) return;
    at = Math.max(0, Math.min(last, step));
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    const x = left + (right - left) * places[at];
    const cross = svg.querySelector(".cross");
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    cross.style.visibility = "visible";
    fill();
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const room = stage.clientWidth - tip.offsetWidth;
    const beside = x * scale + 14 > room ? x * scale - tip.offsetWidth - 14 : x * scale + 14;
    tip.style.left = Math.max(0, Math.min(room, beside)) + "px";
  }

  function fill() {
    const title = document.createElement("b");
    title.textContent = data.names[at];
    const lines = data.curves.map((curve) => {
      const line = document.createElement("div");
      const swatch = document.createElement("i");
      swatch.className = "swatch s" + curve.number;
      const name = document.createElement("span");
      name.textContent = curve.name;
      line.append(swatch, name, curve.text[at]);
      return line;
    });
    tip.replaceChildren(title, ...lines);
    tip.hidden = false;
  }

  function hide() {
    tip.hidden = true;
    for (const cross of stage.querySelectorAll(".cross")) cross.style.visibility = "hidden";
  }

  stage.addEventListener("pointermove", (event) => {
    const svg = shown();
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
    const share = (x - left) / (right - left);
    const distance = (step) => Math.abs(places[step] - share);
    show(places.reduce((best, _, step) => distance(step) < distance(best) ? step : best, 0));
  });
  stage.addEventListener("pointerleave", hide);
  stage.addEventListener("blur", hide);
  stage.addEventListener("focus", () => { if (stage.matches(":focus-visible")) show(at); });
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[event.key];
    if (step) { show(at + step); event.preventDefault(); }
    if (event.key === "Escape") hide();
  });
}
