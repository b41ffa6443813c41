/* Tables sort and filter, the navigation follows, instances come out of the page itself. Without it all can be read. */
"use strict";
(() => {
  const key = (cell) => {
    const text = cell.textContent.trim();
    if (text === "inf") return [0, Infinity];
    const number = parseFloat(text.replace(/,/g, ""));
    return /^-?[\d.]/.test(text) && !Number.isNaN(number) ? [0, number] : [text === "-" || text === "" ? 2 : 1, text];
  };
  const compare = ([a, x], [b, y]) => a - b || (a === 0 ? x - y : String(x).localeCompare(String(y)));
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0], rows = [...body.rows];
    if (rows.length < 2 || !table.tHead) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.classList.add("sorts");
      head.title = [head.title, "A click sorts."].filter(Boolean).join(". ");
      head.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const known = (row) => key(row.cells[column])[0] < 2;
        const order = (a, b) => compare(key(a.cells[column]), key(b.cells[column])) * (down ? -1 : 1);
        const [told, unknown] = [rows.filter(known).sort(order), rows.filter((row) => !known(row))];
        body.append(...told, ...unknown);
      });
    });
    if (rows.length < 8) continue;
    const filter = document.createElement("input");
    Object.assign(filter, {className: "filter", type: "search", placeholder: "only rows with ..."});
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(filter);
  }

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const parts = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const follow = () => {
    const passed = parts.filter((part) => part.getBoundingClientRect().top < 80);
    const here = (passed.length ? passed[passed.length - 1] : parts[0])?.id;
    for (const [id, link] of links) link.classList.toggle("here", id === here);
  };
  addEventListener("scroll", follow, {passive: true});
  follow();

  if (!("DecompressionStream" in window)) return;
  const unpack = async (id) => {
    const packed = document.getElementById(id)?.textContent ?? "";
    if (!packed) return [];
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  unpack("figures").then((drawn) => {
    for (const place of document.querySelectorAll("[data-figure]")) place.outerHTML = drawn[place.dataset.figure];
  });
  let files = {};
  unpack("files").then((found) => { files = found; });
  document.addEventListener("click", (event) => {
    const name = event.target.closest?.("a")?.getAttribute("href") ?? "";
    if (!Object.hasOwn(files, name)) return;
    event.preventDefault();
    const blob = new Blob([JSON.stringify(files[name], null, 1)], {type: "application/json"});
    const link = Object.assign(document.createElement("a"), {href: URL.createObjectURL(blob)});
    link.download = name.split("/").pop();
    link.click();
    document.documentElement.dataset.saved = `${link.download} ${blob.size}`;
  });
})();
