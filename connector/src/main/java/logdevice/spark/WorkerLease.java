package logdevice.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Map;
import java.util.function.Consumer;

import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.PythonWorker;
import org.apache.spark.api.python.PythonWorkerUtils;
import org.apache.spark.api.python.SpecialLengths;
import scala.Option;
import scala.collection.immutable.Set;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A Python worker from Spark's pool, for one task, stream or question. It is given back if it has sent everything, else
 * ended.
 *
 * <p>Spark ends it: the daemon kills the process, so none is left over, whatever its state.
 */
final class WorkerLease {
    // Run by Spark's Python daemon, which imports only modules whose names begin with "pyspark".
    private static final String READS = "pyspark_logdevice.jvm_surface.worker";
    private static final String PLANS = "pyspark_logdevice.jvm_surface.planner";

    private final SparkEnv env = SparkEnv.get();
    private final PythonFunction function;
    private final WorkerSettings settings;
    private final String module;
    private final scala.collection.immutable.Map<String, String> environment;
    private final PythonWorker worker;
    private final WorkerChannel channel;
    private boolean over;

    private WorkerLease(
            PythonFunction function,
            WorkerSettings settings,
            String module,
            Map<String, String> variables,
            Runnable stillWanted) {
        this.function = function;
        this.settings = settings;
        this.module = module;
        this.environment = PythonUtils.toScalaMap(variables);
        boolean usesDaemon = env.conf().getBoolean("spark.python.use.daemon", true);
        this.worker = env.createPythonWorker(function.pythonExec(), module, environment, usesDaemon)._1();
        this.channel = new WorkerChannel(worker.channel(), worker.selector(), worker.selectionKey(), stillWanted);
    }

    static WorkerLease forTask(PythonFunction function, WorkerSettings settings, TaskContext task) {
        Map<String, String> variables = settings.ofTask(function.envVars(), SparkEnv.get(), task);
        return new WorkerLease(function, settings, READS, variables, task::killTaskIfInterrupted);
    }

    static WorkerLease forPlanning(PythonFunction function, WorkerSettings settings, Runnable stillWanted) {
        Map<String, String> variables = settings.ofAny(function.envVars(), SparkEnv.get());
        return new WorkerLease(function, settings, PLANS, variables, stillWanted);
    }

    WorkerChannel channel() {
        return channel;
    }

    /** Asks the worker for one partition. */
    void ask(TaskContext task, byte[] pickledPartition) throws IOException {
        begin(out -> {
            PythonWorkerUtils.writeTaskContext(task, new scala.util.Right<>(0), Option.empty(), out);
            PythonWorkerUtils.writeBroadcasts(PythonUtils.toSeq(function.broadcastVars()), worker, env, out);
            PythonWorkerUtils.writePythonFunction(function, out);
            PythonWorkerUtils.writeBytes(pickledPartition, out);
        });
    }

    /** Sends the first message to a worker that plans: the session's source named logdevice. */
    void greet() throws IOException {
        begin(out -> PythonWorkerUtils.writePythonFunction(SparkInternals.sourceClass(), out));
    }

    /** Sends what every worker needs first, in the form of Spark's own workers, and then the rest. */
    private void begin(Consumer<DataOutputStream> rest) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        PythonWorkerUtils.writePythonVersion(function.pythonVer(), out);
        Set<String> includes = CollectionConverters.asScala(new HashSet<>(function.pythonIncludes())).toSet();
        PythonWorkerUtils.writeSparkFiles(Option.apply(settings.artifacts()), includes, out);
        rest.accept(out);
        out.flush();
        channel.write(ByteBuffer.wrap(bytes.toByteArray()));
    }

    /** Returns the worker to the pool after its last frame, if Spark reuses workers and the worker agrees. */
    void giveBack() throws IOException {
        if (channel.data().readInt() == SpecialLengths.END_OF_STREAM() && WorkerSettings.reuse(env)) {
            over = true;
            env.releasePythonWorker(function.pythonExec(), module, environment, worker);
        } else {
            end();
        }
    }

    /** Ends the worker, unless it was given back. */
    void end() {
        if (!over) {
            over = true;
            env.destroyPythonWorker(function.pythonExec(), module, environment, worker);
        }
    }
}
