import { fileURLToPath } from "node:url";

export default {
  output: "export",
  // What an app needs that embeds on the server too.
  serverExternalPackages: process.env.ON_SERVER ? ["isovec"] : [],
  // Next.js itself is installed one folder up.
  turbopack: { root: fileURLToPath(new URL("..", import.meta.url)) },
};
