package logdevice.spark;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.util.LongAccumulator;

/**
 * The metrics of tasks, with the same names as in Python's {@code task_metrics}.
 *
 * <p>Each is a class, because Spark's history server creates metrics from their class names.
 */
public final class TaskMetrics {
    private TaskMetrics() {}

    private abstract static class Sum extends CustomSumMetric {
        private final String name;
        private final String description;

        Sum(String name, String description) {
            this.name = name;
            this.description = description;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public String description() {
            return description;
        }
    }

    public static final class Records extends Sum {
        public Records() {
            super("records", "records read");
        }
    }

    public static final class BytesReceived extends Sum {
        public BytesReceived() {
            super("bytesReceived", "bytes of bodies received from storage nodes");
        }
    }

    public static final class Gaps extends Sum {
        public Gaps() {
            super("gaps", "gaps in logs");
        }
    }

    public static final class LossGaps extends Sum {
        public LossGaps() {
            super("lossGaps", "gaps where records were lost or trimmed away");
        }
    }

    public static final class Rewinds extends Sum {
        public Rewinds() {
            super("rewinds", "times a read began again from other storage nodes");
        }
    }

    public static final class KnownDown extends Sum {
        public KnownDown() {
            super("knownDown", "storage nodes that reads did without");
        }
    }

    static CustomMetric[] all() {
        return new CustomMetric[] {
            new Records(), new BytesReceived(), new Gaps(), new LossGaps(), new Rewinds(), new KnownDown()
        };
    }

    /** The names, in order; Python's {@code task_metrics} has the same list. */
    public static List<String> names() {
        return java.util.Arrays.stream(all()).map(CustomMetric::name).toList();
    }

    /** The values of one task for Spark: of all the metrics, and no others. */
    static CustomTaskMetric[] of(Map<String, Long> counted) {
        return names().stream()
                .map(name -> new Value(name, counted.getOrDefault(name, 0L)))
                .toArray(CustomTaskMetric[]::new);
    }

    /** Sums over all tasks of a stream, which Spark brings to the driver. */
    static Map<String, LongAccumulator> totals() {
        SparkContext spark = SparkSession.active().sparkContext();
        return names().stream()
                .collect(Collectors.toMap(name -> name, name -> spark.longAccumulator("logdevice " + name)));
    }

    private record Value(String name, long value) implements CustomTaskMetric {}
}
