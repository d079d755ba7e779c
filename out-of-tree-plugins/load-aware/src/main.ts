/** The program: serve load-aware as flags and environment say. */

import { main } from "@berth/plugin-sdk";
import { loadAware } from "./plugin.ts";

await main(loadAware());
