package berth.samelabel;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import com.google.protobuf.ByteString;
import java.util.Map;

/** The labels of an API object's JSON, which is all that the plugin reads of nodes and pods. */
final class Labels {
    private static final Gson GSON = new Gson();

    private record Metadata(Map<String, String> labels) {}

    private record ApiObject(Metadata metadata) {}

    private Labels() {}

    static Map<String, String> of(ByteString json) throws JsonParseException {
        ApiObject object = GSON.fromJson(json.toStringUtf8(), ApiObject.class);
        if (object == null || object.metadata == null) {
            throw new JsonParseException("an object lacks its metadata");
        }
        return object.metadata.labels == null ? Map.of() : object.metadata.labels;
    }
}
