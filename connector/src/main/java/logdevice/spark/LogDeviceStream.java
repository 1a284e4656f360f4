package logdevice.spark;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A streaming query. Offsets, limits and partitions are those of Spark's stream for Python sources, so that a
 * checkpoint of either surface can be continued by the other; readers are columnar, and there are metrics.
 */
final class LogDeviceStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final SupportsTriggerAvailableNow limits;
    private final MicroBatchStream stream; // the same object, seen from its other side
    private final PythonDataSourceV2 source;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final TaskTotals totals = new TaskTotals();
    private Offset reported;

    LogDeviceStream(
            SupportsTriggerAvailableNow limits,
            MicroBatchStream stream,
            PythonDataSourceV2 source,
            StructType columns,
            CaseInsensitiveStringMap options) {
        this.limits = limits;
        this.stream = stream;
        this.source = source;
        this.columns = columns;
        this.options = options;
        SparkInternals.register(totals);
    }

    @Override
    public Offset initialOffset() {
        return stream.initialOffset();
    }

    @Override
    public Offset latestOffset() {
        return stream.latestOffset();
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        return limits.latestOffset(start, limit);
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return limits.getDefaultReadLimit();
    }

    @Override
    public Offset reportLatestOffset() {
        reported = limits.reportLatestOffset();
        return reported;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        limits.prepareForTriggerAvailableNow();
    }

    @Override
    public Offset deserializeOffset(String json) {
        return stream.deserializeOffset(json);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        return stream.planInputPartitions(start, end);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        byte[] function = source.getOrCreateReadInfo(LogDeviceProvider.NAME, options, columns, true).func();
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
        stream.commit(end);
    }

    @Override
    public void stop() {
        stream.stop();
    }
}
