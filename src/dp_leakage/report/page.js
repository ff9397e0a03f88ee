// What a reader can do on the page: choose a point of the picture, move the share of members, sort and search tables.
// Without it the page says the same with its figures. It loads nothing and writes text only, never HTML.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, text = "") => {
    const svg = ["svg", "g", "line", "circle", "rect", "text", "polyline"].includes(tag);
    const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };

  // ------------------------------------------------------------------ the picture
  const WIDEST = 900, NARROWEST = 320;
  const SIZE = { width: WIDEST, height: 440, left: 62, right: 30, top: 26, bottom: 46 };
  const RADIUS = 6;

  const steps = (low, high) => {
    const rough = (high - low) / 7, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((many) => many * power).find((one) => one >= rough);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
  };

  // A name stands beside its series' last point, above or below it if it must, and covers no point and no other name.
  // A series with no free place is named only when it is pointed at.
  const box = (left, middle, width, height) =>
    ({ left, right: left + width, top: middle - height / 2, bottom: middle + height / 2 });
  const meet = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const inside = (one) =>
    one.left >= SIZE.left && one.right <= SIZE.width && one.top >= SIZE.top && one.bottom <= SIZE.height - SIZE.bottom;
  const places = (across, height, width) => [-RADIUS, RADIUS, -16, 16, -26, 26].flatMap((by) =>
    [across - 2 * RADIUS - width, across + 2 * RADIUS].map((left) => box(left, height + by, width, 14)));

  const explore = (known) => {
    let shown = known.points.findIndex((point) => point.told), chosen = shown;
    let measure = Object.keys(known.measures)[0], group = known.points[shown].group;
    const svg = at("picture"), reading = at("reading"), told = at("told");

    const switches = (id, legend, entries, now, change) => {
      const set = at(id);
      if (entries.length < 2) return;
      set.append(make("legend", {}, legend));
      for (const [value, words] of entries) {
        const label = make("label"), button = make("input", { type: "radio", name: id, value });
        button.checked = value === now;
        button.addEventListener("change", () => { change(value); draw(); });
        label.append(button, make("span", {}, words));
        set.append(label);
      }
    };

    const called = (place) => `${known.points[place].name} · ${known.points[place].group}`;

    const say = (place) => {
      const point = known.points[place];
      told.textContent = point.says[measure] ?? point.says.advantage;
    };

    const also = at("also");  // the answer may be about two cells: buttons lead from each to the other
    const choose = (place) => {
      chosen = place;
      known.points.forEach((_, other) => { at(`cell-${other}`).hidden = other !== place; });
      reading.textContent = called(place);
      also.replaceChildren();
      known.points.forEach((point, other) => {
        if (!point.told || other === place || known.points.filter((one) => one.told).length < 2) return;
        const button = make("button", { type: "button", "data-also": other }, called(other));
        button.addEventListener("click", () => { choose(other); reading.focus(); });
        also.append("The answer is also about ", button, ". ");
      });
      say(place);
      accuse(known.points[place].accused);
      for (const mark of svg.querySelectorAll("[role=button]"))
        mark.setAttribute("aria-pressed", String(Number(mark.dataset.cell) === place));
    };

    const draw = () => {
      svg.replaceChildren();
      SIZE.width = Math.min(Math.max(svg.parentElement.clientWidth, NARROWEST), WIDEST);
      svg.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
      const here = known.points.map((point, place) => ({ ...point, place }))
        .filter((point) => point.group === group && point.up[measure]);
      const every = known.points.filter((point) => point.up[measure]);
      const limits = measure.startsWith("tpr") ? null : known.limits[group];  // least use, largest advantage
      const widest = [Math.min(...every.map((p) => p.x[1])), Math.max(...every.map((p) => p.x[2]))];
      const highest = [0, 0.01, ...(limits ? [1.2 * limits[1]] : []), ...every.flatMap((p) => p.up[measure])];
      const tallest = [Math.min(...highest), Math.max(...highest)];
      const [across, up] = [steps(...widest), steps(...tallest)];
      const scale = ([low, high], from, to) => (value) => from + (value - low) / (high - low) * (to - from);
      const x = scale(widest, SIZE.left + RADIUS, SIZE.width - SIZE.right);
      const y = scale(tallest, SIZE.height - SIZE.bottom, SIZE.top);
      const digits = (ticks, unit) => Math.max(0, Math.ceil(-Math.log10((ticks[1] - ticks[0]) * unit) - 1e-9));
      const shares = measure.startsWith("tpr"), use = here[0]?.use;  // "" for accuracy, which is in per cent
      if (limits) {
        const left = Math.max(x(limits[0]), SIZE.left), top = y(limits[1]);
        const right = Math.max(SIZE.width - SIZE.right, left), bottom = SIZE.height - SIZE.bottom;
        svg.append(make("rect", { class: "within", x: left, y: top, width: right - left, height: bottom - top }));
        const words = make("text", { class: "within-words", x: (left + right) / 2, y: bottom - 8,
          "text-anchor": "middle" }, "within both limits");
        svg.append(words);
        if (right - left < words.getComputedTextLength() + 8) {
          words.setAttribute("x", left - 6);
          words.setAttribute("text-anchor", "end");
        }
      }
      for (const tick of up) {
        svg.append(make("line", { class: "grid", x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(tick), y2: y(tick) }));
        const words = shares ? `${(100 * tick).toFixed(digits(up, 100))} %` : tick.toFixed(digits(up, 1));
        svg.append(make("text", { x: SIZE.left - 8, y: y(tick) + 4, "text-anchor": "end" }, words.replace(/^-/, "−")));
      }
      for (const tick of across)
        svg.append(make("text", { x: x(tick), y: SIZE.height - SIZE.bottom + 20, "text-anchor": "middle" },
          use ? tick.toFixed(digits(across, 1)) : `${(100 * tick).toFixed(digits(across, 100))} %`));
      svg.append(make("text", { class: "axis", x: SIZE.left, y: 12 }, `↑ ${known.measures[measure]}`));
      svg.append(make("text", { class: "axis", x: SIZE.width - SIZE.right, y: SIZE.height - 6, "text-anchor": "end" },
        `${use || "right"} on new records →`));

      const series = new Map();
      for (const point of here) series.set(point.series, [...(series.get(point.series) ?? []), point]);
      const lines = make("g"), marks = make("g"), labels = make("g");
      for (const points of series.values())
        lines.append(make("polyline", { points: points.map((p) => `${x(p.x[0])},${y(p.up[measure][0])}`).join(" "),
          fill: "none", stroke: points[0].color || "currentColor" }));
      for (const point of here) {
        const [value, low, high] = point.up[measure], color = point.color || "currentColor";
        const mark = make("g", { role: "button", tabindex: "0", "data-cell": point.place,
          "aria-label": point.says[measure], "aria-pressed": String(point.place === chosen), stroke: color, fill: color });
        if (low !== undefined)
          mark.append(make("line", { x1: x(point.x[0]), x2: x(point.x[0]), y1: y(low), y2: y(high) }));
        mark.append(make("line", { x1: x(point.x[1]), x2: x(point.x[2]), y1: y(value), y2: y(value) }));
        mark.append(make("circle", { class: "near", cx: x(point.x[0]), cy: y(value), r: 2.5 * RADIUS }));
        mark.append(make("circle", { cx: x(point.x[0]), cy: y(value), r: RADIUS }));
        for (const event of ["mouseenter", "focus"]) mark.addEventListener(event, () => say(point.place));
        for (const event of ["mouseleave", "blur"]) mark.addEventListener(event, () => say(chosen));
        mark.addEventListener("click", () => choose(point.place));
        mark.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(point.place); }
        });
        marks.append(mark);
      }
      svg.append(lines, labels, marks);  // before the names, whose widths the browser measures
      const taken = here.map((point) => box(x(point.x[0]) - RADIUS, y(point.up[measure][0]), 2 * RADIUS, 2 * RADIUS));
      const ordered = [...series.values()].sort((one, other) => other.some((p) => p.told) - one.some((p) => p.told));
      const write = (point, words, kind) => {
        const name = make("text", { class: kind }, words);
        labels.append(name);
        const free = places(x(point.x[0]), y(point.up[measure][0]), name.getComputedTextLength())
          .find((place) => inside(place) && !taken.some((other) => meet(place, other)));
        if (!free) { name.remove(); return; }
        taken.push(free);
        name.setAttribute("x", free.left);
        name.setAttribute("y", (free.top + free.bottom) / 2 + 4);
      };
      const named = here.filter((point) => point.told && point.beside);
      for (const point of named) write(point, point.beside, "series told");
      for (const points of ordered) {
        const last = points.reduce((best, point) => (point.x[0] >= best.x[0] ? point : best));
        write(last, last.beside === "no privacy" ? last.beside : last.series, "series");
      }
      for (const point of here) if (point.beside && !point.told && point.beside !== "no privacy")
        write(point, point.beside, "series");
      say(chosen);
    };

    switches("groups", "Model", known.groups.map((one) => [one, one]), group, (value) => { group = value; });
    switches("measures", "Vertical axis", Object.entries(known.measures), measure, (value) => { measure = value; });
    at("explore").hidden = false;
    at("told").after(...document.querySelectorAll(".attacker"));
    draw();
    choose(shown);
    addEventListener("resize", draw);
    for (const instead of document.querySelectorAll(".instead")) instead.classList.add("on-paper");
  };

  // ------------------------------------------------------------------ what an accusation is worth
  let rates = null;
  const LOWEST = -3, HIGHEST = Math.log10(0.9);  // of the share of members, in decades

  const precision = (prior, tpr, fpr) => {
    const right = prior * tpr, wrong = (1 - prior) * fpr;
    return right + wrong > 0 ? right / (right + wrong) : NaN;
  };
  const of_ten = (value) => (Number.isNaN(value) ? "–" : (10 * value).toFixed(1));

  const weigh = () => {
    const prior = 10 ** (LOWEST + (HIGHEST - LOWEST) * at("prior").value / 1000);
    const share = 100 * prior < 1 ? (100 * prior).toFixed(1) : String(Math.round(100 * prior));
    const fixed = Number(share) / 100;  // what is computed is what is said
    at("share").textContent = `${share} %`;
    at("prior").setAttribute("aria-valuetext", `${share} % of the people tested`);
    const [value, low, high] = rates.tpr.map((tpr) => precision(fixed, tpr, rates.fpr));
    at("found").textContent = `${of_ten(value)} [${of_ten(low)}, ${of_ten(high)}] of 10`;
    at("guessed").textContent = `${of_ten(fixed)} of 10`;
    const most = rates.most === null ? null : precision(fixed, rates.most, rates.fpr);
    at("most").textContent = most === null ? "not known: nothing is proven"
      : `${(Math.ceil(100 * most - 1e-9) / 10).toFixed(1)} of 10${rates.given && `, given ${rates.given}`}`;
    for (const [id, part] of [["found", value], ["guessed", fixed], ["most", most ?? 0]])
      at(id).previousElementSibling.firstElementChild.style.width = `${100 * (part || 0)}%`;
  };

  const accuse = (given) => {
    at("accused").hidden = !given;
    if (!given) return;
    rates = given;
    at("outsiders").textContent = Math.round(1 / given.fpr).toLocaleString("en");
    weigh();
  };

  // ------------------------------------------------------------------ tables
  const MINUS = /−/g;
  const worth = (cell) => {
    const words = cell.textContent.trim(), found = parseFloat(words.replace(MINUS, "-").replace(/,/g, ""));
    return words === "∞" ? Infinity : Number.isNaN(found) ? null : found;
  };
  const compare = (one, other) => {
    const [a, b] = [worth(one), worth(other)];
    if (a !== null && b !== null) return a - b || 0;
    if (a !== null || b !== null) return a === null ? 1 : -1;
    return one.textContent.localeCompare(other.textContent, "en");
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0], rows = [...body.rows], heads = [...[...table.tHead.rows].at(-1).cells];
    if (table.closest(".searched")) {
      const search = make("input", { type: "search", "aria-label": "Show rows with", placeholder: "Show rows with …" });
      search.addEventListener("input", () => {
        const words = search.value.toLowerCase().split(/\s+/);
        for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      });
      table.closest(".wide").before(search);
    }
    if (rows.length < 2) continue;
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        rows.sort((a, b) => (down ? -1 : 1) * compare(a.cells[column], b.cells[column]));
        for (const row of rows) row.classList.remove("first");
        body.append(...rows);
      });
    });
  }

  const known = at("cells");
  if (known) {
    at("prior").value = Math.round(1000 * (-1 - LOWEST) / (HIGHEST - LOWEST));  // one in ten
    at("prior").addEventListener("input", weigh);
    explore(JSON.parse(known.textContent));
  }
})();
