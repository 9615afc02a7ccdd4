// Begins the page without a server: its scripts are checked before one of them is run.

import { scripts } from "./files.js";

try {
  await scripts();
  await import("./main.js");
} catch (error) {
  document.getElementById("title").textContent = "The model cannot be opened";
  document.getElementById("status").textContent = error.message;
}
