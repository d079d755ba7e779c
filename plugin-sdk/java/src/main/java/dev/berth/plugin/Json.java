package dev.berth.plugin;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.io.IOException;
import java.util.Map;

/** The API server's JSON as objects; fields that a class does not know are passed over. */
public final class Json {
  static final ObjectMapper MAPPER =
      JsonMapper.builder().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES).build();

  /** Made once: finding out how a pod is read takes longer than reading a thousand of them. */
  private static final Map<Class<?>, ObjectReader> READERS =
      Map.of(Pod.class, MAPPER.readerFor(Pod.class), Node.class, MAPPER.readerFor(Node.class));

  private Json() {}

  /**
   * Reads an object of a watched kind as a class or record of the plugin's own.
   *
   * @throws IllegalArgumentException if it can't be read as that
   */
  public static <T> T read(JsonNode object, Class<T> kind) {
    try {
      return MAPPER.treeToValue(object, kind);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }

  static <T> T read(byte[] text, Class<T> kind) {
    ObjectReader known = READERS.get(kind);
    try (JsonParser parser = MAPPER.createParser(text)) {
      T object = (known != null ? known : MAPPER.readerFor(kind)).readValue(parser);
      if (object == null || parser.nextToken() != null) {
        throw new IllegalArgumentException("there is no object, or more than one");
      }
      return object;
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    } catch (IOException e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
  }

  static byte[] write(Object value) {
    try {
      return MAPPER.writeValueAsBytes(value);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }
}
