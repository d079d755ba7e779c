package dev.berth.plugin;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What may stand at one place of the arguments: the schema that is announced and the check that is
 * made come from the same record.
 */
final class Shape {
  private final String kind; // as in JSON Schema
  private final Argument says;
  private final JsonNode value;
  private Map<String, Shape> fields;
  private Shape items;

  private Shape(String kind, Argument says, JsonNode value) {
    this.kind = kind;
    this.says = says;
    this.value = value;
  }

  /**
   * The shape of a record, whose values are the defaults.
   *
   * @throws IllegalArgumentException for what arguments can't hold
   */
  static Shape of(Record defaults) {
    return record(defaults.getClass(), null, Json.MAPPER.valueToTree(defaults));
  }

  private static Shape record(Class<?> type, Argument says, JsonNode value) {
    Shape made = new Shape("object", says, null);
    made.fields = new LinkedHashMap<>();
    for (RecordComponent component : type.getRecordComponents()) {
      Argument own = component.getAnnotation(Argument.class);
      JsonNode inner = value == null ? null : value.get(component.getName());
      made.fields.put(component.getName(), of(component.getGenericType(), own, inner));
    }
    return made;
  }

  private static Shape of(Type type, Argument says, JsonNode value) {
    if (type instanceof ParameterizedType generic) {
      boolean list = generic.getRawType() == List.class;
      if (!list && generic.getRawType() != Map.class) {
        throw new IllegalArgumentException("arguments can't hold a " + type);
      }
      Shape made = new Shape(list ? "array" : "object", says, value);
      made.items = of(generic.getActualTypeArguments()[list ? 0 : 1], null, null);
      return made;
    }
    if (type instanceof Class<?> known && known.isRecord()) {
      return record(known, says, value);
    }
    return new Shape(kindOf(type), says, value);
  }

  private static String kindOf(Type type) {
    if (type == String.class) {
      return "string";
    } else if (type == boolean.class || type == Boolean.class) {
      return "boolean";
    } else if (type == double.class || type == Double.class) {
      return "number";
    } else if (List.of(int.class, long.class, Integer.class, Long.class).contains(type)) {
      return "integer";
    }
    throw new IllegalArgumentException("arguments can't hold a " + type);
  }

  /** The shape as JSON Schema. */
  ObjectNode document() {
    ObjectNode made = Json.MAPPER.createObjectNode().put("type", kind);
    if (says != null) {
      describe(made);
    }
    if (value != null && !value.isNull()) {
      made.set("default", value);
    }
    if (fields != null) {
      ObjectNode properties = made.putObject("properties");
      fields.forEach((name, field) -> properties.set(name, field.document()));
      made.put("additionalProperties", false);
    } else if (items != null) {
      made.set(kind.equals("array") ? "items" : "additionalProperties", items.document());
    }
    return made;
  }

  private void describe(ObjectNode made) {
    made.put("description", says.value());
    if (says.oneOf().length > 0) {
      ArrayNode texts = made.putArray("enum");
      List.of(says.oneOf()).forEach(texts::add);
    }
    if (Double.isFinite(says.minimum())) {
      made.put("minimum", says.minimum());
    }
    if (Double.isFinite(says.maximum())) {
      made.put("maximum", says.maximum());
    }
  }

  /** Adds everything that is wrong with a value, as "path: what is wrong". */
  void check(String path, JsonNode given, List<String> problems) {
    if (given.isNull()) {
      return;
    }
    if (!fits(given)) {
      String place = path.isEmpty() ? "arguments" : path;
      problems.add(place + ": expected " + kind + ", got " + given);
    } else if (given.isObject()) {
      given.properties().forEach(e -> checkField(path, e.getKey(), e.getValue(), problems));
    } else if (given.isArray()) {
      for (int i = 0; i < given.size(); i++) {
        items.check(path + "[" + i + "]", given.get(i), problems);
      }
    } else if (says != null) {
      checkBounds(path, given, problems);
    }
  }

  private boolean fits(JsonNode given) {
    return switch (kind) {
      case "object" -> given.isObject();
      case "array" -> given.isArray();
      case "boolean" -> given.isBoolean();
      case "string" -> given.isTextual();
      case "number" -> given.isNumber();
      default -> given.isNumber() && isWhole(given.decimalValue());
    };
  }

  private static boolean isWhole(BigDecimal number) {
    return number.stripTrailingZeros().scale() <= 0;
  }

  private void checkField(String path, String name, JsonNode given, List<String> problems) {
    String inner = path.isEmpty() ? name : path + "." + name;
    Shape field = fields == null ? items : fields.get(name);
    if (field == null) {
      problems.add(inner + ": unknown argument");
    } else {
      field.check(inner, given, problems);
    }
  }

  private void checkBounds(String path, JsonNode given, List<String> problems) {
    if (given.isTextual()) {
      List<String> allowed = List.of(says.oneOf());
      if (!allowed.isEmpty() && !allowed.contains(given.textValue())) {
        problems.add(path + ": " + given + " is none of " + String.join(", ", allowed));
      }
    } else if (given.doubleValue() < says.minimum()) {
      problems.add(path + ": " + given + " is less than " + plain(says.minimum()));
    } else if (given.doubleValue() > says.maximum()) {
      problems.add(path + ": " + given + " is more than " + plain(says.maximum()));
    }
  }

  private static String plain(double number) {
    return new BigDecimal(String.valueOf(number)).stripTrailingZeros().toPlainString();
  }
}
