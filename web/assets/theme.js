// The theme that was chosen, set before anything is drawn; without a choice the system's.
"use strict";
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage may be forbidden: the system's theme it is */ }
