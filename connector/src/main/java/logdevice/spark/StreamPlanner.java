package logdevice.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

import org.apache.spark.api.python.SpecialLengths;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The Python worker that plans the batches of one stream, taken out of Spark's pool with the first question and given
 * back when the stream ends: the next stream finds it with everything imported and connected.
 *
 * <p>A question is JSON with its length in front. An answer is the number of its parts, and each with its length in
 * front; or Spark's sign for an error, and its traceback. After an error the worker ends, and so does the query.
 */
final class StreamPlanner {
    private static final long LAST_WORD_NS = TimeUnit.SECONDS.toNanos(5);
    private static final String END = "end";
    private static final String DIED = "The Python worker that plans the batches of this stream ended before it had "
            + "answered: killed, out of memory, or crashed. Its own last words, if any, are in the driver's standard "
            + "error. The query can be started again and goes on from its checkpoint.";

    private final CaseInsensitiveStringMap options;
    private final StructType columns;
    private final ReentrantLock asking = new ReentrantLock();
    private WorkerLease worker; // none before the first question and after the last
    private boolean answered = true; // everything that was asked
    private long lastWordNs;

    StreamPlanner(CaseInsensitiveStringMap options, StructType columns) {
        this.options = options;
        this.columns = columns;
    }

    /** One question with an answer of one part. */
    String ask(String call, Map<String, String> arguments) {
        return new String(askForParts(call, arguments)[0], StandardCharsets.UTF_8);
    }

    /** The arguments are JSON. */
    byte[][] askForParts(String call, Map<String, String> arguments) {
        asking.lock();
        try {
            if (worker == null) {
                open();
            }
            return exchange(question(call, arguments), call);
        } finally {
            asking.unlock();
        }
    }

    /** Whatever is going on: a worker that owes nobody an answer goes back to the pool, any other is ended. */
    void stop() {
        boolean isIdle = asking.tryLock();
        try {
            if (isIdle && worker != null && answered) {
                lastWordNs = System.nanoTime() + LAST_WORD_NS;
                exchange(question(END, Map.of()), END);
                worker.giveBack();
            }
        } catch (Exception error) {
            // A worker that is being given up anyway: ended below.
        } finally {
            if (worker != null) {
                worker.end();
            }
            if (isIdle) {
                worker = null;
                lastWordNs = 0;
                asking.unlock();
            }
        }
    }

    private void open() {
        worker = WorkerLease.forPlanning(
                SparkInternals.functionOfSource(new byte[0]), WorkerSettings.ofThisSession(), this::stillWanted);
        try {
            worker.greet();
        } catch (IOException error) {
            throw ended(error);
        }
        exchange(
                question("open", Map.of(
                        "options", Json.write(options.asCaseSensitiveMap()), "schema", columns.json())),
                null);
    }

    private byte[][] exchange(byte[] question, String call) {
        answered = false;
        WorkerChannel channel = worker.channel();
        try {
            channel.write(ByteBuffer.wrap(question));
            int count = channel.readInt();
            if (count == SpecialLengths.PYTHON_EXCEPTION_THROWN()) {
                throw failed(call, new String(channel.readBytes(channel.readInt()), StandardCharsets.UTF_8));
            }
            byte[][] parts = new byte[count][];
            for (int part = 0; part < count; part++) {
                parts[part] = channel.readBytes(channel.readInt());
            }
            answered = true;
            return parts;
        } catch (InterruptedIOException stopped) {
            throw SparkInternals.sneaky(stopped);
        } catch (IOException error) {
            throw ended(error);
        }
    }

    private static byte[] question(String call, Map<String, String> arguments) {
        StringBuilder text = new StringBuilder("{\"call\":").append(Json.write(call));
        arguments.forEach((name, json) -> text.append(',').append(Json.write(name)).append(':').append(json));
        byte[] json = text.append('}').toString().getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(json.length + Integer.BYTES);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(json.length);
            out.write(json);
        } catch (IOException impossible) {
            throw new IllegalStateException("writing to memory does no input or output", impossible);
        }
        return bytes.toByteArray();
    }

    /** Spark stops a query by interrupting its thread, and knows this exception as a consequence. */
    private void stillWanted() {
        if (Thread.currentThread().isInterrupted()) {
            throw SparkInternals.sneaky(new InterruptedIOException("the stream was stopped"));
        }
        if (lastWordNs != 0 && System.nanoTime() - lastWordNs > 0) {
            throw SparkInternals.sneaky(new InterruptedIOException("the worker does not say that it has ended"));
        }
    }

    /** As Spark reports what goes wrong in the stream of a Python source. */
    private static RuntimeException failed(String call, String traceback) {
        throw SparkInternals.sneaky(call == null
                ? QueryCompilationErrors.pythonDataSourceError("plan", "initialize source", traceback)
                : QueryExecutionErrors.pythonStreamingDataSourceRuntimeError(call, traceback));
    }

    private static RuntimeException ended(IOException error) {
        return new IllegalStateException(DIED, error);
    }
}
