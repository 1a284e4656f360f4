package logdevice.spark;

import java.util.Arrays;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One scan of logs: planned by Python, read in columns. */
final class LogDeviceScan implements Scan {
    private final CreatedSource created;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final Filter[] filters;

    LogDeviceScan(
            CreatedSource created, StructType columns, CaseInsensitiveStringMap options, Filter[] filters) {
        this.created = created;
        this.columns = columns;
        this.options = options;
        this.filters = filters;
    }

    @Override
    public StructType readSchema() {
        return columns;
    }

    @Override
    public String description() {
        return "logdevice(jvm) columns " + Arrays.toString(columns.fieldNames()) + " ranges from "
                + Arrays.toString(filters);
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        // Said here, so that Spark need not plan partitions to find out while it still plans the query.
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public Batch toBatch() {
        return new LogDeviceBatch(created, columns, options, filters);
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        return new LogDeviceStream(columns, options);
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return TaskMetrics.all();
    }
}
