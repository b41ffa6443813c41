/* Formulas that arithmatex marks, typeset by the KaTeX beside this file; where one cannot be, its source stays. */
"use strict";
addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const source = place.textContent.trim();
    katex.render(source.slice(2, -2), place, {displayMode: source.startsWith("\\["), throwOnError: false});
  }
});
