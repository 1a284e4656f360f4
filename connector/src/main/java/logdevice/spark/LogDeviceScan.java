package logdevice.spark;

import java.util.Arrays;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One scan of logs. Planned by Spark's classes for Python sources; only who reads a partition is ours. */
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
        PythonDataSourceV2 source = SparkInternals.pythonSource(LogDeviceProvider.NAME);
        MicroBatchStream stream = new PythonScan(
                        source, LogDeviceProvider.NAME, columns, options, new Filter[0])
                .toMicroBatchStream(checkpointLocation);
        if (stream instanceof SupportsTriggerAvailableNow limited) {
            return new LogDeviceStream(limited, stream, source, columns, options);
        }
        throw new IllegalStateException("The Python source of logdevice does not support Trigger.AvailableNow: "
                + "its package and this jar are of different versions. Install both from one wheel.");
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return TaskMetrics.all();
    }
}
