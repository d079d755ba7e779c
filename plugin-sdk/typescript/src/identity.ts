/** IdentityService: who the plugin is, and which profiles use it with which arguments. */

import { capabilities } from "./capabilities.ts";
import { ArgumentError, describe } from "./errors.ts";
import type {
  ConfigureRequest,
  ConfigureResponse,
  HandshakeRequest,
  HandshakeResponse,
} from "./generated/berth/plugin/v1/identity.ts";
import { log } from "./log.ts";
import { decodeJson } from "./objects.ts";
import { putInShadow, takeArguments } from "./plugin.ts";
import type { Session } from "./session.ts";

const PROTOCOL_VERSION = 1;

/** Introduce the plugin. */
export function handshake(session: Session, request: HandshakeRequest): HandshakeResponse {
  log.info("handshake", { host: request.hostName, version: request.hostVersion });
  return {
    name: session.plugin.name,
    version: session.plugin.version,
    supportedVersions: [PROTOCOL_VERSION],
    capabilities: { ...capabilities(session.plugin), ttrpcSocket: session.ttrpcSocket },
  };
}

/** Hand a profile's arguments to the plugin; every error goes back. */
export function configure(session: Session, request: ConfigureRequest): ConfigureResponse {
  if (request.removed) return removed(session, request.profile);
  const errors = [...request.handshakeErrors];
  if (request.protocolVersion !== PROTOCOL_VERSION) {
    errors.push(`protocol_version: ${request.protocolVersion} is not spoken here, ${PROTOCOL_VERSION} is`);
  }
  if (!errors.length) errors.push(...configured(session, request));
  for (const error of errors) log.error("configure", { profile: request.profile, error });
  session.announce();
  return { errors };
}

function configured(session: Session, request: ConfigureRequest): readonly string[] {
  const { plugin } = session;
  const before = plugin.inShadow(request.profile);
  putInShadow(plugin, request.profile, request.shadow);
  try {
    takeArguments(plugin, decodeJson(request.arguments ?? Buffer.from("{}")), request.profile);
  } catch (error) {
    putInShadow(plugin, request.profile, before);
    return error instanceof ArgumentError ? error.errors : [`arguments: ${describe(error)}`];
  }
  session.profiles.add(request.profile);
  return [];
}

function removed(session: Session, profile: string): ConfigureResponse {
  if (session.profiles.delete(profile)) {
    log.info("removed", { profile });
    session.plugin.arguments?.forget(profile);
    session.plugin.profileRemoved?.(profile);
    putInShadow(session.plugin, profile, false);
    session.announce();
  }
  return { errors: [] };
}
