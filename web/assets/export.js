// A matrix as it is shown, filters included, to take away: CSV, LaTeX, SVG, PNG. Loaded when somebody asks for one.
"use strict";
(() => {
  const seen = (element) => getComputedStyle(element).display !== "none";
  // Rows of cells that are shown: {element, lines: its words, outcome, groups: of test cases}.
  const grid = (table) => [...table.rows].filter(seen).map((row) => [...row.cells].filter(seen).map((element) => {
    const off = element.classList.contains("off");
    const groups = [...element.querySelectorAll("i")].map((group) => group.textContent.trim());
    const holder = element.querySelector(":scope > a") || element;
    const small = [...element.querySelectorAll("small")].map((part) => part.textContent.trim());
    const first = groups.length ? "" : [...holder.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent).join("").trim();
    return { element, lines: off ? [] : [...(first ? [first] : []), ...groups, ...small], outcome: element.classList[0] || "", groups };
  }));
  const names = (rows) => rows[0].slice(1).map(({ lines }) => lines[0] || "");
  const body = (rows) => rows.filter(([head]) => head.element.closest("tbody")).map(([head, ...cells]) => [head.lines[0], cells.filter(({ element }) => !element.classList.contains("all"))]);

  const field = (text) => {
    const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const csv = (table, about) => {
    const rows = grid(table), servers = names(rows);
    const lines = [["server", "client", "test case", "outcome", "value", "note"]];
    for (const [client, cells] of body(rows)) {
      for (const [at, { lines: [value = "", ...notes], groups, outcome }] of cells.entries()) {
        if (groups.length) lines.push([servers[at], client, about.test, "", groups.join("; "), ""]);
        else if (value) lines.push([servers[at], client, about.test, outcome, /^[\d.]+( s)?$/.test(value) ? value : "", notes.join("; ")]);
      }
    }
    return new Blob([lines.map((line) => line.map(field).join(",")).join("\n"), "\n"], { type: "text/csv" });
  };

  const SIGNS = new Map([["×", "$\\times$"], ["✓", "$\\checkmark$"], ["–", "--"], ["·", "$\\cdot$"], ["»", "$\\gg$"], ["~", "$\\sim$"], ["→", "$\\rightarrow$"],
    ["\\", "\\textbackslash{}"], ["^", "\\^{}"], ["−", "$-$"], ["±", "$\\pm$"], ["≈", "$\\approx$"], ["†", "$\\dagger$"]]);
  const tex = (text) => [...text].map((sign) => SIGNS.get(sign) ?? (/[&%$#_{}]/.test(sign) ? `\\${sign}` : sign)).join("");
  const latex = (table, about) => {
    const rows = grid(table);
    const line = (cells) => `${cells.map(({ lines: [first = "", ...more] }) => tex(first) + (more.length ? ` (${tex(more.join(", "))})` : "")).join(" & ")} \\\\`;
    const [head, ...rest] = rows;
    const last = rest.filter(([first]) => first.element.closest("tfoot"));
    const text = [
      "% needs the packages booktabs and amssymb", `% ${about.title.replaceAll("\n", " ")}`, `\\begin{tabular}{l*{${head.length - 1}}{r}}`, "\\toprule", line(head), "\\midrule",
      ...rest.filter((row) => !last.includes(row)).map(line), ...(last.length ? ["\\midrule", ...last.map(line)] : []), "\\bottomrule", "\\end{tabular}", "",
    ];
    return new Blob([text.join("\n")], { type: "application/x-tex" });
  };

  const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const drawing = (table, about) => {
    const rows = grid(table), HEAD = 34;
    const page = getComputedStyle(document.documentElement).backgroundColor;
    const boxes = rows.flat().map((cell) => ({ ...cell, box: cell.element.getBoundingClientRect(), look: getComputedStyle(cell.element) }));
    const left = Math.min(...boxes.map(({ box }) => box.left)), top = Math.min(...boxes.map(({ box }) => box.top));
    const width = Math.ceil(Math.max(...boxes.map(({ box }) => box.right)) - left), height = Math.ceil(Math.max(...boxes.map(({ box }) => box.bottom)) - top) + HEAD;
    const parts = boxes.map(({ box, look, lines, groups }) => {
      const x = box.left - left, y = box.top - top + HEAD;
      const start = look.textAlign === "left" || look.textAlign === "start";
      const at = start ? x + 5 : x + box.width / 2;
      const step = 15, first = y + box.height / 2 - ((lines.length - 1) * step) / 2 + 4.5;
      const words = lines.map((text, number) => `<text x="${at.toFixed(1)}" y="${(first + number * step).toFixed(1)}" text-anchor="${start ? "start" : "middle"}" fill="${look.color}" font-size="${number && !groups.length ? 11 : 13}"${look.fontWeight >= 600 ? ' font-weight="600"' : ""}>${escaped(text)}</text>`);
      return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${box.width.toFixed(1)}" height="${box.height.toFixed(1)}" fill="${look.backgroundColor}"/>${words.join("")}`;
    });
    const ink = getComputedStyle(document.body).color;
    return { width, height, text: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif"><title>${escaped(about.title)}</title><rect width="100%" height="100%" fill="${page}"/><text x="5" y="20" font-size="14" font-weight="600" fill="${ink}">${escaped(about.title)}</text>${parts.join("")}</svg>` };
  };
  const svg = (table, about) => new Blob([drawing(table, about).text], { type: "image/svg+xml" });
  const png = async (table, about) => {
    const { width, height, text } = drawing(table, about);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    const ratio = Math.min(2, 8000 / Math.max(width, height));
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => { canvas.toBlob(done, "image/png"); });
  };

  const FORMS = { CSV: ["csv", csv], LaTeX: ["tex", latex], SVG: ["svg", svg], PNG: ["png", png] };
  window.matrixExport = async (form, table, about) => {
    const [suffix, make] = FORMS[form];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await make(table, about));
    link.download = `${about.name}.${suffix}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
})();
