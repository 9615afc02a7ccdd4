// Begins the page without a server: its scripts are checked before one of them is run, first those that check.

async function begun(name) {
  try {
    return await import(name);
  } catch (error) {
    const again = "copy the whole folder again, or export it again";
    throw new Error(`${name.slice(2)} is missing or damaged (${error.message}); ${again}`);
  }
}

try {
  await begun("./backend.js");
  const { scripts } = await begun("./files.js");
  await scripts();
  await import("./main.js");
} catch (error) {
  document.getElementById("title").textContent = "The model cannot be opened";
  document.getElementById("status").textContent = error.message;
}
