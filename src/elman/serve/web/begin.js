// Begins the page without a server: its scripts are checked before one of them is run, first those that check.

async function imported(name, needed) {
  try {
    const found = await import(name);
    if (!(needed in found)) throw new Error(`it has no ${needed}`);
    return found;
  } catch (error) {
    const again = "copy the whole folder again, or export it again";
    throw new Error(`${name.slice(2)} is missing or damaged (${error.message}); ${again}`);
  }
}

async function begin() {
  try {
    await imported("./backend.js", "Refused");
    const { scripts } = await imported("./files.js", "scripts");
    await scripts();
    await import("./main.js");
  } catch (error) {
    document.getElementById("title").textContent = "The model cannot be opened";
    document.getElementById("status").textContent = error.message;
  }
}

const begun = begin();
document.body.dataset.begun = "";  // opened.js says where nothing begins
await begun;
