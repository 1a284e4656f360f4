package logdevice.spark;

import java.util.Map;

import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.LongAccumulator;

/** Is sent to executors, with the pickled Python reader (as on the Python surface) and the worker's settings. */
record ArrowReaderFactory(
        PythonFunction function, StructType columns, WorkerSettings settings, Map<String, LongAccumulator> totals)
        implements PartitionReaderFactory {

    static ArrowReaderFactory of(byte[] pickledReader, StructType columns, Map<String, LongAccumulator> totals) {
        PythonFunction function = SparkInternals.functionOfSource(pickledReader);
        return new ArrowReaderFactory(function, columns, WorkerSettings.ofThisSession(), totals);
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        TaskContext task = TaskContext.get();
        WorkerLease worker = WorkerLease.forTask(function, settings, task);
        return ArrowPartitionReader.open(worker, task, partition, columns, totals);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("partitions of logdevice can only be read in columns");
    }
}
