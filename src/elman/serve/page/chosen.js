// Which backend the page asks: here the server. A page without one has another file of this name.

export { Server as Chosen } from "./server.js";
