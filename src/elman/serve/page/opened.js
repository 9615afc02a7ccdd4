// A page that was opened as a file: browsers run modules from a server alone, so that nothing else of it begins.

if (location.protocol === "file:") {
  document.getElementById("title").textContent = "This page needs a server";
  document.getElementById("facts").textContent = "Browsers do not let a page that was opened as a file read the model"
    + " beside it. In its folder run: python -m http.server 8000, and open http://localhost:8000/";
}

// A script that is missing or damaged begins nothing, so that this one says it.
addEventListener("error", ({ message, filename, target }) => {
  const address = filename || target.src;
  if (!address || document.body.dataset.ready) return;
  document.getElementById("title").textContent = "This page cannot be opened";
  document.getElementById("status").textContent = `${address.split("/").at(-1)} is missing or damaged`
    + `${message ? ` (${message})` : ""}; reload the page or, without a server, export it again`;
}, true);
