package logdevice.spark;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.LongAccumulator;

/**
 * A streaming query. Offsets, limits and partitions are made by the Python source, as they are without this jar, so
 * that a checkpoint of either surface can be continued by the other; readers are columnar, and there are metrics.
 */
final class LogDeviceStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final PythonPlanner planner;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final Map<String, LongAccumulator> totals = TaskMetrics.totals();
    private byte[] reader; // of a partition, pickled
    private Offset idleAt; // the last answer, which holds for some time if nothing was new
    private long idleUntilNs;
    private Offset reported; // how far behind the query was when it last asked

    LogDeviceStream(StructType columns, CaseInsensitiveStringMap options) {
        this.planner = PythonPlanner.ofStream(options, columns);
        this.columns = columns;
        this.options = options;
    }

    @Override
    public Offset initialOffset() {
        return deserializeOffset(planner.ask("initialOffset", Map.of()));
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks for an offset with a start and a limit");
    }

    /** While Python says that the last answer holds, it need not be asked: Spark does some ninety times a second. */
    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        boolean isLimited = !(limit instanceof ReadAllAvailable);
        if (isLimited && start.equals(idleAt) && System.nanoTime() - idleUntilNs < 0) {
            return start;
        }
        byte[][] answer = planner.askForParts(
                "latestOffset", Map.of("start", start.json(), "limited", String.valueOf(isLimited)));
        Offset latest = deserializeOffset(PythonPlanner.text(answer[0]));
        idleAt = latest;
        idleUntilNs = System.nanoTime() + Long.parseLong(PythonPlanner.text(answer[1])) * 1000;
        reported = deserializeOffset(PythonPlanner.text(answer[2]));
        return latest;
    }

    /** Spark has only to say whether they hold: Python keeps all of them. */
    @Override
    public ReadLimit getDefaultReadLimit() {
        JsonNode limits = Json.parse(planner.ask("limits", Map.of()));
        ReadLimit bytes = ReadLimit.maxBytes(limits.get("bytes").asLong());
        return limits.has("records")
                ? ReadLimit.compositeLimit(new ReadLimit[] {ReadLimit.maxRows(limits.get("records").asLong()), bytes})
                : bytes;
    }

    @Override
    public Offset reportLatestOffset() {
        return reported;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        planner.ask("prepareForTriggerAvailableNow", Map.of());
    }

    @Override
    public Offset deserializeOffset(String json) {
        return new PythonStreamingSourceOffset(json);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        return SparkInternals.partitions(
                planner.askForParts("partitions", Map.of("start", start.json(), "end", end.json())));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        if (reader == null) {
            reader = planner.askForParts("reader", Map.of())[0];
        }
        return ArrowReaderFactory.of(reader, columns, totals);
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
        Map<String, String> metrics = new TreeMap<>();
        totals.forEach((name, total) -> {
            if (!total.isZero()) { // added to, if only nothing
                metrics.put(name, total.value().toString());
            }
        });
        if (reported != null) {
            metrics.putAll(Json.strings(Json.parse(reported.json()).path("metrics")));
        }
        return metrics;
    }

    /** How the progress of a query names its source. */
    @Override
    public String toString() {
        return "logdevice[" + options.getOrDefault("logs", options.getOrDefault("logsPattern", "")) + "]";
    }

    @Override
    public void commit(Offset end) {
        // Nothing is kept for a query: what it has read is in its checkpoint.
    }

    @Override
    public void stop() {
        planner.stop();
    }
}
