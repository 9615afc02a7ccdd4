// A page that was opened as a file: browsers run modules from a server alone, so that nothing else of it begins. And a
// script that is missing or damaged begins nothing, so that this one says it.

function shown(title, place, line) {
  document.getElementById("title").textContent = title;
  document.getElementById(place).textContent = line;
}

if (location.protocol === "file:") {
  shown("This page needs a server", "facts", "Browsers do not let a page that was opened as a file read the model"
    + " beside it. In its folder run: python -m http.server 8000, and open http://localhost:8000/");
} else {
  const damaged = (address, message) => shown("This page cannot be opened", "status",
    `${address.split("/").at(-1)} is missing or damaged${message ? ` (${message})` : ""}; reload the page or, without a`
      + " server, export it again");
  addEventListener("error", ({ message, filename, target }) => {
    const address = filename || target.src;
    if (address && !document.body.dataset.ready) damaged(address, message);
  }, true);
  addEventListener("load", () => {
    const empty = document.querySelector('[src="begin.js"]') && !("begun" in document.body.dataset);
    if (empty && !document.getElementById("status").textContent) damaged("begin.js");
  });
}
