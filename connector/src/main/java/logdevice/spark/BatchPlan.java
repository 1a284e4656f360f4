package logdevice.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The plan that Python made for a batch query: the pickled reader and partitions, and how much they read. */
record BatchPlan(byte[] reader, byte[][] partitions, long rows, long bytes) {
    static BatchPlan of(StructType columns, CaseInsensitiveStringMap options, List<Comparison> filters) {
        Map<String, String> arguments = Map.of(
                "options", Json.write(options.asCaseSensitiveMap()),
                "schema", columns.json(),
                "filters", Json.write(filters));
        byte[][] parts = PythonPlanner.askOnce("plan", arguments, "plan", LogDeviceProvider.NAME);
        JsonNode size = Json.parse(PythonPlanner.text(parts[0]));
        byte[][] partitions = Arrays.copyOfRange(parts, 2, parts.length);
        return new BatchPlan(parts[1], partitions, size.get("rows").asLong(), size.get("bytes").asLong());
    }
}
