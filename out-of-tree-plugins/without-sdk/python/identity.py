"""IdentityService: who the plugin is, and each profile's arguments."""

import json

import grpc
from session import Session

from berth.plugin.v1 import identity_pb2 as pb
from berth.plugin.v1 import identity_pb2_grpc

VERSION = 1
INTRODUCTION = pb.HandshakeResponse(
    name="same-label",
    version="0.1.0",
    supported_versions=[VERSION],
    capabilities=pb.Capabilities(
        extension_points=[pb.EXTENSION_POINT_FILTER, pb.EXTENSION_POINT_SCORE],
        events=[
            pb.EventInterest(resource="Node", actions=[pb.ACTION_TYPE_ADD, pb.ACTION_TYPE_UPDATE_NODE_LABEL])
        ],
        pod_fields=pb.PodFields(paths=["/metadata/labels"]),
        state=pb.StateInterest(nodes=True),
        node_local=True,
    ),
)


class Identity(identity_pb2_grpc.IdentityServiceServicer):
    """Says who the plugin is, and takes arguments."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def Handshake(  # noqa: N802 - gRPC's name
        self, request: pb.HandshakeRequest, context: grpc.ServicerContext
    ) -> pb.HandshakeResponse:
        """Introduce the plugin."""
        del request, context
        return INTRODUCTION

    def Configure(  # noqa: N802 - gRPC's name
        self, request: pb.ConfigureRequest, context: grpc.ServicerContext
    ) -> pb.ConfigureResponse:
        """Take a profile's arguments, or its leave."""
        del context
        errors = []
        with self._session.moved:
            try:
                self._take(request)
            except ValueError as error:
                errors.append(f"arguments: {error}")
            self._session.changed()
        return pb.ConfigureResponse(errors=errors)

    def _take(self, request: pb.ConfigureRequest) -> None:
        if request.removed:
            self._session.labels.pop(request.profile, None)
            return
        if request.protocol_version != VERSION:
            raise ValueError("another version of the protocol is spoken here")
        given = json.loads(request.arguments) if request.HasField("arguments") else {}
        self._session.labels[request.profile] = _label_in(given)


def _label_in(given: object) -> str:
    if not isinstance(given, dict):
        raise ValueError("must be an object")  # noqa: TRY004 - the caller reports ValueError
    if unknown := given.keys() - {"label"}:
        raise ValueError(f"{', '.join(sorted(unknown))}: unknown")
    label = given.get("label", "team")
    if not isinstance(label, str) or not label:
        raise ValueError("label: must be a string that is not empty")
    return label
