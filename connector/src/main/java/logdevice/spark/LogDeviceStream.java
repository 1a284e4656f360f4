package logdevice.spark;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

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

/**
 * A streaming query. Offsets, limits and partitions are made by the Python source, as they are without this jar, so
 * that a checkpoint of either surface can be continued by the other; readers are columnar, and there are metrics.
 */
final class LogDeviceStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final StreamPlanner planner;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final TaskTotals totals = new TaskTotals();
    private byte[] function; // how a partition is read, pickled
    private Offset reported;

    LogDeviceStream(StructType columns, CaseInsensitiveStringMap options) {
        this.planner = new StreamPlanner(options, columns);
        this.columns = columns;
        this.options = options;
        SparkInternals.register(totals);
    }

    @Override
    public Offset initialOffset() {
        return deserializeOffset(planner.ask("initialOffset", Map.of()));
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks for an offset with a start and a limit");
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        String limited = String.valueOf(!(limit instanceof ReadAllAvailable));
        return deserializeOffset(planner.ask("latestOffset", Map.of("start", start.json(), "limited", limited)));
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return AsOptionsSay.LIMIT;
    }

    @Override
    public Offset reportLatestOffset() {
        String report = planner.ask("reportLatestOffset", Map.of());
        reported = report.equals("null") ? null : deserializeOffset(report);
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
        byte[][] pickled = planner.askForParts("partitions", Map.of("start", start.json(), "end", end.json()));
        InputPartition[] partitions = new InputPartition[pickled.length];
        for (int index = 0; index < partitions.length; index++) {
            partitions[index] = SparkInternals.partition(index, pickled[index]);
        }
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        if (function == null) {
            function = planner.askForParts("function", Map.of())[0];
        }
        return ArrowReaderFactory.create(function, columns, totals);
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
        Map<String, String> metrics = new TreeMap<>();
        totals.value().forEach((name, value) -> metrics.put(name, value.toString()));
        if (reported != null) {
            metrics.putAll(Json.numbersUnder(reported.json(), "metrics"));
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

    /** Python knows the limits of its options; Spark has only to say whether they hold. */
    private enum AsOptionsSay implements ReadLimit {
        LIMIT
    }
}
