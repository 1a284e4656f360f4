package logdevice.spark;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;

import org.apache.spark.api.python.SpecialLengths;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Asks a Python worker on the driver about logs. The worker is taken from Spark's pool with the first question and
 * given back after the last, so the next planner gets a worker whose modules are imported and whose connections are
 * open. A stream keeps its worker until the stream ends.
 *
 * <p>A question is a length and JSON. An answer is the number of its parts, then each part with its length; or Spark's
 * number for an error, then the traceback. After an error the worker ends, and so does the query.
 */
public final class PythonPlanner {
    private static final long LAST_WORD_NS = TimeUnit.SECONDS.toNanos(5);
    private static final String DIED = "The Python worker that plans for this query ended before it had answered: "
            + "it was killed, ran out of memory, or crashed. Its messages, if any, are in the driver's standard "
            + "error. A stream can be started again and continues from its checkpoint.";

    private final ByteBuffer opening; // the first question of a stream; null for a single question
    private final ReentrantLock asking = new ReentrantLock();
    private WorkerLease worker; // null before the first question and after the last
    private boolean answered = true; // whether the last question was answered
    private long lastWordNs;

    private PythonPlanner(ByteBuffer opening) {
        this.opening = opening;
    }

    static PythonPlanner ofStream(CaseInsensitiveStringMap options, StructType columns) {
        return new PythonPlanner(question("open", Map.of(
                "options", Json.write(options.asCaseSensitiveMap()), "schema", columns.json())));
    }

    /** Asks a single question. An error message names the action and the subject. */
    public static byte[][] askOnce(String call, Map<String, String> arguments, String action, String subject) {
        PythonPlanner planner = new PythonPlanner(null);
        try {
            return planner.ask(question(call, arguments), traceback -> sourceError(action, subject, traceback));
        } finally {
            planner.stop();
        }
    }

    /** Asks a question of a stream whose answer has one part. */
    String ask(String call, Map<String, String> arguments) {
        return text(askForParts(call, arguments)[0]);
    }

    /** Asks a question of a stream. The arguments are JSON. */
    byte[][] askForParts(String call, Map<String, String> arguments) {
        return ask(
                question(call, arguments),
                traceback -> QueryExecutionErrors.pythonStreamingDataSourceRuntimeError(call, traceback));
    }

    public static String text(byte[] part) {
        return new String(part, StandardCharsets.UTF_8);
    }

    /** Throws the error that Spark throws for a failed Python source; PySpark shows it as an AnalysisException. */
    public static RuntimeException failed(String action, String subject, String message) {
        throw SparkInternals.sneaky(sourceError(action, subject, message));
    }

    private static Throwable sourceError(String action, String subject, String message) {
        return QueryCompilationErrors.pythonDataSourceError(action, subject, message);
    }

    private byte[][] ask(ByteBuffer question, Function<String, Throwable> error) {
        asking.lock();
        try {
            if (worker == null) {
                open();
            }
            return exchange(question, error);
        } finally {
            asking.unlock();
        }
    }

    /** May be called at any time. A worker that has answered everything goes back to the pool, any other is ended. */
    void stop() {
        boolean isIdle = asking.tryLock();
        try {
            if (isIdle && worker != null && answered) {
                lastWordNs = System.nanoTime() + LAST_WORD_NS;
                exchange(question("end", Map.of()), IllegalStateException::new);
                worker.giveBack();
            }
        } catch (Exception error) {
            // The worker is no longer needed, and is ended below.
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
            throw new IllegalStateException(DIED, error);
        }
        if (opening != null) {
            exchange(opening.duplicate(), traceback -> sourceError("plan", "initialize source", traceback));
        }
    }

    private byte[][] exchange(ByteBuffer question, Function<String, Throwable> error) {
        answered = false;
        WorkerChannel channel = worker.channel();
        try {
            channel.write(question);
            int count = channel.data().readInt();
            if (count == SpecialLengths.PYTHON_EXCEPTION_THROWN()) {
                throw SparkInternals.sneaky(error.apply(channel.readText()));
            }
            byte[][] parts = new byte[count][];
            for (int part = 0; part < count; part++) {
                parts[part] = channel.readBytes();
            }
            answered = true;
            return parts;
        } catch (InterruptedIOException stopped) {
            throw SparkInternals.sneaky(stopped);
        } catch (IOException ended) {
            throw new IllegalStateException(DIED, ended);
        }
    }

    private static ByteBuffer question(String call, Map<String, String> arguments) {
        StringBuilder text = new StringBuilder("{\"call\":").append(Json.write(call));
        arguments.forEach((name, json) -> text.append(',').append(Json.write(name)).append(':').append(json));
        byte[] json = text.append('}').toString().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(Integer.BYTES + json.length).putInt(json.length).put(json).flip();
    }

    /** Throws if the query was stopped. Spark interrupts its thread, and expects this exception as the result. */
    private void stillWanted() {
        if (Thread.currentThread().isInterrupted()) {
            throw SparkInternals.sneaky(new InterruptedIOException("the query was stopped"));
        }
        if (lastWordNs != 0 && System.nanoTime() - lastWordNs > 0) {
            throw SparkInternals.sneaky(new InterruptedIOException("the worker did not confirm its end in time"));
        }
    }
}
