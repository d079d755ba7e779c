/**
 * The plugin that the sidecar benchmark starts: it turns down every tenth node, and scores the others by their
 * number, all at once.
 *
 *     benchplugin.ts NAME ADDRESS
 */

import { definePlugin, reject, serve } from "../src/index.ts";

const [name = "", address = ""] = process.argv.slice(2);
const reasons = [reject("node(s) had the wrong number")];

await serve(
  definePlugin({
    name,
    // As the Python plugin beside it, it follows pods too.
    wantsPods: true,
    filterNodes: (_, nodes) => ({
      codes: Uint8Array.from({ length: nodes.length }, (_, i) => Number(i % 10 === 0)),
      reasons,
    }),
    scoreNodes: (_, nodes) => Uint8Array.from({ length: nodes.length }, (_, i) => i % 101),
  }),
  address,
);
