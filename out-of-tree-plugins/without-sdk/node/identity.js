/** IdentityService: who the plugin is, and each profile's arguments. */

const VERSION = 1;
const INTRODUCTION = {
  name: "same-label",
  version: "0.1.0",
  supported_versions: [VERSION],
  capabilities: {
    extension_points: ["EXTENSION_POINT_FILTER", "EXTENSION_POINT_SCORE"],
    events: [{ resource: "Node", actions: ["ACTION_TYPE_ADD", "ACTION_TYPE_UPDATE_NODE_LABEL"] }],
    pod_fields: { paths: ["/metadata/labels"] },
    state: { nodes: true },
    node_local: true,
  },
};

export function identity(session) {
  return {
    Handshake: (_call, reply) => reply(null, INTRODUCTION),
    Configure: ({ request }, reply) => {
      const errors = [];
      try {
        take(session, request);
      } catch (error) {
        errors.push(`arguments: ${error.message}`);
      }
      session.changed();
      reply(null, { errors });
    },
  };
}

function take(session, request) {
  if (request.removed) {
    session.labels.delete(request.profile);
    return;
  }
  if (request.protocol_version !== VERSION) throw new Error("another version of the protocol is spoken here");
  // An optional field is there if the loader's field of the same name with an underscore is.
  const given = request._arguments ? JSON.parse(request.arguments.toString()) : {};
  session.labels.set(request.profile, labelIn(given));
}

function labelIn(document) {
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new Error("must be an object");
  }
  const { label = "team", ...others } = document;
  for (const key of Object.keys(others)) throw new Error(`${key}: unknown`);
  if (typeof label !== "string" || label === "") throw new Error("label: must be a string that is not empty");
  return label;
}
