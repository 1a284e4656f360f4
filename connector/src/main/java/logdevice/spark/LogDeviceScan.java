package logdevice.spark;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One scan of logs: planned by Python, read in columns. A batch query plans it once, when Spark first asks for its
 * size or its partitions.
 *
 * <p>Scans that read the same are equal, so if a query has several, Spark runs only one of them.
 */
final class LogDeviceScan implements SupportsReportStatistics, Batch {
    private static final OptionalLong UNKNOWN = OptionalLong.empty();

    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final List<Comparison> filters;
    private boolean isStream;
    private BatchPlan planned;

    LogDeviceScan(StructType columns, CaseInsensitiveStringMap options, List<Comparison> filters) {
        this.columns = columns;
        this.options = options;
        this.filters = List.copyOf(filters);
    }

    @Override
    public StructType readSchema() {
        return columns;
    }

    @Override
    public String description() {
        return "logdevice(jvm) columns [" + String.join(", ", columns.fieldNames()) + "], PushedFilters: " + filters;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        // Otherwise Spark would plan partitions to find this out, while it still plans the query.
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public synchronized MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        isStream = true;
        return new LogDeviceStream(columns, options);
    }

    /** The size by the counters of the logs. It is unknown for a stream, which goes on reading. */
    @Override
    public synchronized Statistics estimateStatistics() {
        return isStream ? new Size(UNKNOWN, UNKNOWN)
                : new Size(OptionalLong.of(plan().bytes()), OptionalLong.of(plan().rows()));
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return SparkInternals.partitions(plan().partitions());
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return ArrowReaderFactory.of(plan().reader(), columns, Map.of());
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return TaskMetrics.all();
    }

    private synchronized BatchPlan plan() {
        if (planned == null) {
            planned = BatchPlan.of(columns, options, filters);
        }
        return planned;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LogDeviceScan scan && columns.equals(scan.columns)
                && options.equals(scan.options) && filters.equals(scan.filters);
    }

    @Override
    public int hashCode() {
        return Objects.hash(columns, options, filters);
    }

    private record Size(OptionalLong sizeInBytes, OptionalLong numRows) implements Statistics {}
}
