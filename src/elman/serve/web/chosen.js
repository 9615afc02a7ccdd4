// Which backend the page asks: here the model in the browser.

export { Local as Chosen } from "./local.js";
