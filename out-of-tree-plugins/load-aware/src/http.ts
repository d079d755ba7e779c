/** JSON over HTTP, of servers that may be slow, down, or talk nonsense. */

import { type IncomingMessage, request as plain } from "node:http";
import { request as secure } from "node:https";
import { readFile } from "node:fs/promises";

const TIMEOUT_MILLISECONDS = 10_000;
const MAX_BYTES = 256 << 20;
const SHOWN = 200;

/** Where to ask, and as whom; files are read anew each time, because tokens are renewed. */
export interface Endpoint {
  readonly address: string;
  readonly tokenFile?: string | undefined;
  readonly caFile?: string | undefined;
}

/** A server did not answer as it should; the text says which, and what it said. */
export class FetchError extends Error {}

/**
 * What the server answers to GET.
 * @throws FetchError if it is no JSON, or none comes in time; errors of files and sockets.
 */
export async function getJson(endpoint: Endpoint, path: string, signal: AbortSignal): Promise<unknown> {
  const url = `${endpoint.address.replace(/\/+$/, "")}${path}`;
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MILLISECONDS)]);
  const headers: Record<string, string> = { accept: "application/json" };
  if (endpoint.tokenFile)
    headers.authorization = `Bearer ${(await readFile(endpoint.tokenFile, "utf8")).trim()}`;
  const ca = endpoint.caFile ? await readFile(endpoint.caFile) : undefined;
  const { status, text } = await get(url, headers, ca, bounded);
  if (status !== 200) throw new FetchError(`${url} answered ${status}: ${text.slice(0, SHOWN)}`);
  try {
    return JSON.parse(text);
  } catch {
    throw new FetchError(`${url} answered no JSON: ${text.slice(0, SHOWN)}`);
  }
}

function get(
  url: string,
  headers: Record<string, string>,
  ca: Buffer | undefined,
  signal: AbortSignal,
): Promise<{ status: number | undefined; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
  const options = { headers, signal, agent: false as const, ...(ca && { ca }) };
  const asked = (url.startsWith("https:") ? secure : plain)(url, options, (response) => {
    read(response).then((text) => resolve({ status: response.statusCode, text }), reject);
  });
  // A fetch must not keep a process alive that was asked to stop.
  asked.on("socket", (socket) => socket.unref());
  asked.on("error", reject);
  asked.end();
  return promise;
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new FetchError(`an answer of more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
