package logdevice.spark;

import java.util.List;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/** A batch query: Python plans its partitions once, when they are first needed; columnar readers read them. */
final class LogDeviceBatch implements Batch {
    private final CreatedSource created;
    private final StructType columns;
    private final CaseInsensitiveStringMap options;
    private final Filter[] filters;
    private PythonDataSourceReadInfo planned;

    LogDeviceBatch(
            CreatedSource created, StructType columns, CaseInsensitiveStringMap options, Filter[] filters) {
        this.created = created;
        this.columns = columns;
        this.options = options;
        this.filters = filters;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        List<byte[]> pickled = CollectionConverters.asJava(plan().partitions());
        InputPartition[] partitions = new InputPartition[pickled.size()];
        for (int index = 0; index < partitions.length; index++) {
            partitions[index] = SparkInternals.partition(index, pickled.get(index));
        }
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return ArrowReaderFactory.create(plan().func(), columns, new TaskTotals());
    }

    private synchronized PythonDataSourceReadInfo plan() {
        if (planned == null) {
            planned = SparkInternals.plan(created, columns, options, filters);
        }
        return planned;
    }
}
