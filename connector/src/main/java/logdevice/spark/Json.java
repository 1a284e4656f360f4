package logdevice.spark;

import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** What Python and Java tell each other apart from rows is JSON. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("Python sent what is not JSON: " + text, error);
        }
    }

    public static String write(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("cannot be written as JSON: " + value, error);
        }
    }

    /** The numbers in the object {@code field} of a JSON object; none if there is no such object. */
    static Map<String, String> numbersUnder(String text, String field) {
        return strings(parse(text).path(field), JsonNode::isNumber);
    }

    /** The fields of a JSON object as texts. */
    public static Map<String, String> strings(JsonNode object) {
        return strings(object, JsonNode::isValueNode);
    }

    private static Map<String, String> strings(JsonNode object, java.util.function.Predicate<JsonNode> wanted) {
        Map<String, String> found = new TreeMap<>();
        object.properties().forEach(entry -> {
            if (wanted.test(entry.getValue())) {
                found.put(entry.getKey(), entry.getValue().asText());
            }
        });
        return found;
    }
}
