package logdevice.spark.catalog;

import java.util.HashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import logdevice.spark.Json;
import logdevice.spark.PythonPlanner;

/** The cluster of a catalog. Every question goes to Python, and no answer is cached. */
record Cluster(Map<String, String> options) {
    /** Calls a function of Python's catalog module by its name. */
    JsonNode ask(String function, Map<String, ?> arguments) {
        Map<String, String> request = Map.of(
                "function", Json.write(function),
                "options", Json.write(options),
                "arguments", Json.write(arguments));
        JsonNode answer = Json.parse(PythonPlanner.text(PythonPlanner.askOnce("catalog", request, "ask", "catalog")[0]));
        if (answer.has("error")) {
            throw PythonPlanner.failed("ask", "catalog", answer.get("error").asText());
        }
        return answer.get("result");
    }

    /** Arguments from names and values in turn; those with the value null are left out. */
    static Map<String, Object> arguments(Object... namesAndValues) {
        Map<String, Object> arguments = new HashMap<>();
        for (int place = 0; place < namesAndValues.length; place += 2) {
            if (namesAndValues[place + 1] != null) {
                arguments.put((String) namesAndValues[place], namesAndValues[place + 1]);
            }
        }
        return arguments;
    }
}
