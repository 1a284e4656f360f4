package logdevice.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Map;

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
 * A Python worker out of Spark's pool, for one task: given back when it has said all, else ended.
 *
 * <p>Ending is Spark's own: the daemon kills the process, so none is left behind whatever state it is in.
 */
final class WorkerLease {
    /** Run by Spark's Python daemon, which imports only modules whose names begin with "pyspark". */
    private static final String MODULE = "pyspark_logdevice.jvm_worker";

    private final SparkEnv env = SparkEnv.get();
    private final PythonFunction function;
    private final WorkerSettings settings;
    private final TaskContext task;
    private final scala.collection.immutable.Map<String, String> environment;
    private final PythonWorker worker;
    private final WorkerChannel channel;
    private boolean over;

    private WorkerLease(PythonFunction function, WorkerSettings settings, TaskContext task) {
        this.function = function;
        this.settings = settings;
        this.task = task;
        Map<String, String> variables = settings.environment(function.envVars(), env, task);
        this.environment = PythonUtils.toScalaMap(variables);
        boolean daemon = env.conf().getBoolean("spark.python.use.daemon", true);
        this.worker = env.createPythonWorker(function.pythonExec(), MODULE, environment, daemon)._1();
        this.channel = new WorkerChannel(worker.channel(), worker.selector(), worker.selectionKey(), task);
    }

    static WorkerLease take(PythonFunction function, WorkerSettings settings, TaskContext task) {
        return new WorkerLease(function, settings, task);
    }

    WorkerChannel channel() {
        return channel;
    }

    TaskContext task() {
        return task;
    }

    /** Asks for one partition. What a worker needs to know of its task goes first, as Spark's own workers get it. */
    void ask(int partition, byte[] pickledPartition) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(partition);
        PythonWorkerUtils.writePythonVersion(function.pythonVer(), out);
        PythonWorkerUtils.writeTaskContext(task, new scala.util.Right<>(0), Option.empty(), out);
        Set<String> includes = CollectionConverters.asScala(new HashSet<>(function.pythonIncludes())).toSet();
        PythonWorkerUtils.writeSparkFiles(Option.apply(settings.artifacts()), includes, out);
        PythonWorkerUtils.writeBroadcasts(PythonUtils.toSeq(function.broadcastVars()), worker, env, out);
        PythonWorkerUtils.writePythonFunction(function, out);
        PythonWorkerUtils.writeBytes(pickledPartition, out);
        out.writeInt(SpecialLengths.END_OF_STREAM());
        out.flush();
        channel.write(ByteBuffer.wrap(bytes.toByteArray()));
    }

    /** After the worker's last word: it may serve another task, if Spark is set so and the worker agrees. */
    void giveBack() throws IOException {
        if (channel.readInt() == SpecialLengths.END_OF_STREAM() && WorkerSettings.reuse(env)) {
            over = true;
            env.releasePythonWorker(function.pythonExec(), MODULE, environment, worker);
        } else {
            end();
        }
    }

    /** Does nothing if the worker was given back. */
    void end() {
        if (!over) {
            over = true;
            env.destroyPythonWorker(function.pythonExec(), MODULE, environment, worker);
        }
    }
}
