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
 * A streaming query. The Python source makes offsets, limits and partitions, as it does without this jar, so a query
 * can change its surface and keep its checkpoint. Readers are columnar, and there are metrics.
 */
final class LogDeviceStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final PythonPlanner planner;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final Map<String, LongAccumulator> totals = TaskMetrics.totals();
    private byte[] reader; // of a partition, pickled
    private Offset idleAt; // the last answer, which is valid for some time if nothing was new
    private long idleUntilNs;
    private Offset reported; // the lag of the query when it last asked

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

    /**
     * The end of the next batch. Spark asks for it about ninety times a second. As long as Python's last answer is
     * valid, Python is not asked again.
     */
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

    /** The limits of a batch. Spark only passes on whether they apply; Python obeys all of them. */
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
            if (!total.isZero()) { // false once anything was added, even 0
                metrics.put(name, total.value().toString());
            }
        });
        if (reported != null) {
            metrics.putAll(Json.strings(Json.parse(reported.json()).path("metrics")));
        }
        return metrics;
    }

    /** The name of the source in the progress of a query. */
    @Override
    public String toString() {
        return "logdevice[" + options.getOrDefault("logs", options.getOrDefault("logsPattern", "")) + "]";
    }

    @Override
    public void commit(Offset end) {
        // Nothing to do: the checkpoint has what the query has read.
    }

    @Override
    public void stop() {
        planner.stop();
    }
}
