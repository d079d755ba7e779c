/** Where a plugin is served: a unix socket of its own, or TCP with certificates. */

import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { AddressError, describe } from "./errors.ts";
import { log } from "./log.ts";

/** The socket's path, undefined for TCP addresses. */
export function unixPath(address: string): string | undefined {
  const found = /^unix:(?:\/\/)?(\/.*)$/.exec(address);
  return found?.[1];
}

/**
 * Make the socket's directory, private if it is new, and take away a socket without a server.
 * @throws AddressError if it is served, or another kind of file is there.
 */
export async function prepareSocket(path: string): Promise<void> {
  try {
    const folder = dirname(path);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isShared() && (statSync(folder).mode & 0o777) === 0o700) chmodSync(folder, 0o750);
    if (statSync(folder).mode & 0o022)
      log.warn("others may write to the socket's directory", { path: folder });
    if (!existsSync(path)) return;
    if (!lstatSync(path).isSocket())
      throw new AddressError(`unix:${path}: there is a file that is no socket`);
    if (await isServed(path)) throw new AddressError(`unix:${path}: in use`);
    rmSync(path);
  } catch (error) {
    throw error instanceof AddressError ? error : new AddressError(`unix:${path}: ${describe(error)}`);
  }
}

/** Whether the socket is open to the group of the process: a host of another user dials it. */
export function isShared(): boolean {
  return process.env.BERTH_PLUGIN_SOCKET_SHARED === "true";
}

/** Open it to the owner alone, and to the group where it is shared. */
export function makePrivate(path: string): void {
  chmodSync(path, isShared() ? 0o660 : 0o600);
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}
