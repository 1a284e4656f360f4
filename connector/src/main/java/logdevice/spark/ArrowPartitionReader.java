package logdevice.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.SpecialLengths;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.LongAccumulator;

/**
 * Reads the rows of one partition from the socket of a Python worker, in Arrow batches, directly into the memory
 * that Spark's operators use.
 *
 * <p>A reader exists as long as its task. The worker sends frames. A number at the start of each says what follows:
 * which columns are sent and an Arrow batch of them, a number of rows without columns, the end with the task's
 * counters, or an error.
 */
final class ArrowPartitionReader implements PartitionReader<ColumnarBatch> {
    private static final int BATCH = 1;
    private static final int ROWS = 2;
    private static final int END = 3;
    private static final ColumnVector[] NO_COLUMNS = {};
    private static final String DIED = "The Python worker that reads logs for this task ended before it had sent "
            + "everything: it was killed, ran out of memory, or crashed. Its messages, if any, are in the executor's "
            + "standard error; spark.executor.pyspark.memory and spark.python.worker.faulthandler.enabled may help.";

    private final WorkerLease worker;
    private final TaskContext task;
    private final WorkerChannel channel;
    private final StructType columns;
    private final Map<String, LongAccumulator> totals;
    private final BufferAllocator allocator;
    private final Map<Long, ArrowStreamReader> streams = new HashMap<>();
    private final Map<String, Long> counted = new HashMap<>();
    private ColumnarBatch batch;
    private long rowsLeft; // of a frame without columns: the number of rows of a batch is only an int
    private boolean ended;

    private ArrowPartitionReader(
            WorkerLease worker, TaskContext task, StructType columns, Map<String, LongAccumulator> totals) {
        this.worker = worker;
        this.task = task;
        this.channel = worker.channel();
        this.columns = columns;
        this.totals = totals;
        this.allocator = ArrowUtils.rootAllocator()
                .newChildAllocator("logdevice, task " + task.taskAttemptId(), 0, Long.MAX_VALUE);
    }

    /** Tells the worker to read the partition. */
    static ArrowPartitionReader open(
            WorkerLease worker,
            TaskContext task,
            InputPartition partition,
            StructType columns,
            Map<String, LongAccumulator> totals) {
        ArrowPartitionReader reader = new ArrowPartitionReader(worker, task, columns, totals);
        try {
            worker.ask(task, SparkInternals.pickled(partition));
        } catch (IOException error) {
            reader.close();
            throw new IllegalStateException(DIED, error);
        }
        return reader;
    }

    @Override
    public boolean next() throws IOException {
        if (rowsLeft > 0) {
            return takeRows();
        }
        if (ended) {
            return false;
        }
        try {
            return takeFrame();
        } catch (IOException error) {
            task.killTaskIfInterrupted();
            throw new IOException(DIED, error);
        }
    }

    private boolean takeFrame() throws IOException {
        int frame = channel.data().readInt();
        if (frame == BATCH) {
            return takeBatch();
        }
        if (frame == ROWS) {
            rowsLeft = channel.data().readLong();
            return takeRows();
        }
        if (frame == END) {
            takeCounters();
            return false;
        }
        if (frame == SpecialLengths.PYTHON_EXCEPTION_THROWN()) {
            throw SparkInternals.pythonError(channel.readText());
        }
        throw new IllegalStateException("Unknown frame " + frame + " from a Python worker: the installed package and "
                + "this jar have different versions. Install both from one wheel.");
    }

    /** Reads a batch. Columns that have only nulls are not sent; batches with the same columns are one Arrow stream. */
    private boolean takeBatch() throws IOException {
        long sent = channel.data().readLong();
        ArrowStreamReader stream = streams.computeIfAbsent(sent, any -> new ArrowStreamReader(channel, allocator));
        stream.loadNextBatch();
        VectorSchemaRoot root = stream.getVectorSchemaRoot();
        // New vectors every time, because Spark closes the batch that it has read.
        ColumnVector[] vectors = new ColumnVector[columns.length()];
        int next = 0;
        for (int column = 0; column < vectors.length; column++) {
            vectors[column] = (sent >>> column & 1) == 1
                    ? new ArrowColumnVector(root.getVector(next++))
                    : nulls(columns.fields()[column].dataType(), root.getRowCount());
        }
        batch = new ColumnarBatch(vectors, root.getRowCount());
        return true;
    }

    private static ColumnVector nulls(DataType type, int rows) {
        ConstantColumnVector vector = new ConstantColumnVector(rows, type);
        vector.setNull();
        return vector;
    }

    private boolean takeRows() {
        int rows = (int) Math.min(rowsLeft, Integer.MAX_VALUE);
        rowsLeft -= rows;
        batch = new ColumnarBatch(NO_COLUMNS, rows);
        return true;
    }

    private void takeCounters() throws IOException {
        Json.parse(channel.readText())
                .properties()
                .forEach(entry -> counted.put(entry.getKey(), entry.getValue().asLong()));
        totals.forEach((name, total) -> Optional.ofNullable(counted.get(name)).ifPresent(total::add));
        ended = true;
        worker.giveBack();
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return TaskMetrics.of(counted);
    }

    @Override
    public void close() {
        worker.end();
        try {
            for (ArrowStreamReader stream : streams.values()) {
                stream.close(false);
            }
        } catch (IOException error) {
            throw new IllegalStateException("closing vectors does no input or output", error);
        } finally {
            allocator.close();
        }
    }
}
