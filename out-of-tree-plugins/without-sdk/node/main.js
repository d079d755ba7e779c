/** A plugin for Berth on grpc-js alone: same-label keeps pods on nodes with their own value of a label. */

import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Server, ServerCredentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { HealthImplementation } from "grpc-health-check";
import { identity } from "./identity.js";
import { scheduling } from "./scheduling.js";
import { Session } from "./session.js";
import { sync } from "./sync.js";

const PROTO = fileURLToPath(new URL("../../../proto", import.meta.url));
const FILES = ["identity", "state", "scheduling"].map((name) => `berth/plugin/v1/${name}.proto`);
/** Calls grow with the cluster, while grpc-js takes 4 MiB by default. */
const LARGEST_CALL = 64 << 20;

const address = process.env.BERTH_PLUGIN_ADDRESS;
if (!address?.startsWith("unix:")) throw new Error("BERTH_PLUGIN_ADDRESS: an address unix:PATH is needed");
const socket = address.slice("unix:".length);

const definition = loadSync(FILES, {
  includeDirs: [PROTO],
  keepCase: true,
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
});
const protocol = loadPackageDefinition(definition).berth.plugin.v1;
const health = new HealthImplementation({ "": "SERVING" });
const session = new Session(health);
const server = new Server({ "grpc.max_receive_message_length": LARGEST_CALL });
health.addToServer(server);
server.addService(protocol.IdentityService.service, identity(session));
server.addService(protocol.StateService.service, sync(session));
server.addService(protocol.SchedulingService.service, scheduling(session));

rmSync(socket, { force: true }); // An earlier process may have left it.
process.umask(0o177); // The socket is closed to other users from its first moment on.
server.bindAsync(address, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
process.on("SIGTERM", () => {
  server.forceShutdown(); // Streams are open for ever, so their ends are not waited for.
  rmSync(socket, { force: true });
});
