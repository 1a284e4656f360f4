package logdevice.spark;

import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Reads and writes JSON, in which Python and Java exchange everything except rows. */
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

    /** The fields of a JSON object as texts; empty for any other JSON value. */
    public static Map<String, String> strings(JsonNode object) {
        Map<String, String> found = new TreeMap<>();
        object.properties().forEach(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }
}
