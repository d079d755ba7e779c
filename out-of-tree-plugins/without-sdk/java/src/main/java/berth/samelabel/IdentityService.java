package berth.samelabel;

import berth.plugin.v1.Identity.ActionType;
import berth.plugin.v1.Identity.Capabilities;
import berth.plugin.v1.Identity.ConfigureRequest;
import berth.plugin.v1.Identity.ConfigureResponse;
import berth.plugin.v1.Identity.EventInterest;
import berth.plugin.v1.Identity.ExtensionPoint;
import berth.plugin.v1.Identity.HandshakeRequest;
import berth.plugin.v1.Identity.HandshakeResponse;
import berth.plugin.v1.Identity.PodFields;
import berth.plugin.v1.Identity.StateInterest;
import berth.plugin.v1.IdentityServiceGrpc;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.grpc.stub.StreamObserver;

/** Who the plugin is, and each profile's arguments. */
final class IdentityService extends IdentityServiceGrpc.IdentityServiceImplBase {
    private static final int VERSION = 1;

    private final Session session;

    IdentityService(Session session) {
        this.session = session;
    }

    @Override
    public void handshake(HandshakeRequest request, StreamObserver<HandshakeResponse> answers) {
        answers.onNext(
                HandshakeResponse.newBuilder()
                        .setName("same-label")
                        .setVersion("0.1.0")
                        .addSupportedVersions(VERSION)
                        .setCapabilities(capabilities())
                        .build());
        answers.onCompleted();
    }

    @Override
    public void configure(ConfigureRequest request, StreamObserver<ConfigureResponse> answers) {
        ConfigureResponse.Builder response = ConfigureResponse.newBuilder();
        synchronized (session) {
            try {
                take(request);
            } catch (IllegalArgumentException | JsonParseException error) {
                response.addErrors("arguments: " + error.getMessage());
            }
            session.changed();
        }
        answers.onNext(response.build());
        answers.onCompleted();
    }

    private void take(ConfigureRequest request) {
        if (request.getRemoved()) {
            session.labels.remove(request.getProfile());
            return;
        }
        if (request.getProtocolVersion() != VERSION) {
            throw new IllegalArgumentException("another version of the protocol is spoken here");
        }
        String label = "team";
        if (request.hasArguments()) {
            label = labelIn(request.getArguments().toStringUtf8());
        }
        session.labels.put(request.getProfile(), label);
    }

    private static String labelIn(String json) {
        JsonElement document = JsonParser.parseString(json);
        if (!(document instanceof JsonObject arguments)) {
            throw new IllegalArgumentException("must be an object");
        }
        for (String key : arguments.keySet()) {
            if (!key.equals("label")) {
                throw new IllegalArgumentException(key + ": unknown");
            }
        }
        JsonElement label = arguments.get("label");
        if (label == null) {
            return "team";
        }
        if (!label.isJsonPrimitive() || label.getAsString().isEmpty()) {
            throw new IllegalArgumentException("label: must be a string that is not empty");
        }
        return label.getAsString();
    }

    private static Capabilities capabilities() {
        return Capabilities.newBuilder()
                .addExtensionPoints(ExtensionPoint.EXTENSION_POINT_FILTER)
                .addExtensionPoints(ExtensionPoint.EXTENSION_POINT_SCORE)
                .addEvents(
                        EventInterest.newBuilder()
                                .setResource("Node")
                                .addActions(ActionType.ACTION_TYPE_ADD)
                                .addActions(ActionType.ACTION_TYPE_UPDATE_NODE_LABEL))
                .setPodFields(PodFields.newBuilder().addPaths("/metadata/labels"))
                .setState(StateInterest.newBuilder().setNodes(true))
                .setNodeLocal(true)
                .build();
    }
}
