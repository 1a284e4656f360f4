package logdevice.spark;

import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

import org.apache.spark.JobArtifactSet;
import org.apache.spark.JobArtifactState;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/** What Spark tells its own Python workers by their environment, so that ours behave alike. */
record WorkerSettings(
        boolean hideTraceback, boolean simplifiedTraceback, String artifacts, String plannerMemoryMb)
        implements Serializable {

    static WorkerSettings ofThisSession() {
        SQLConf conf = SQLConf.get();
        Option<JobArtifactState> state = JobArtifactSet.getCurrentJobArtifactState();
        Option<Object> memory = conf.pythonPlannerExecMemory();
        return new WorkerSettings(
                conf.pysparkHideTraceback(),
                conf.pysparkSimplifiedTraceback(),
                state.isDefined() ? state.get().uuid() : null,
                memory.isDefined() ? memory.get().toString() : null);
    }

    Map<String, String> ofTask(Map<String, String> ofFunction, SparkEnv env, TaskContext task) {
        Map<String, String> variables = ofAny(ofFunction, env);
        String memory = task.getLocalProperty("resource.pyspark.memory");
        if (memory != null) {
            int cores = Math.max(1, Integer.parseInt(Objects.requireNonNullElse(task.getLocalProperty("resource.executor.cores"), "1")));
            variables.put("PYSPARK_EXECUTOR_MEMORY_MB", String.valueOf(Long.parseLong(memory) / cores));
        }
        return variables;
    }

    Map<String, String> ofPlanner(Map<String, String> ofFunction, SparkEnv env) {
        Map<String, String> variables = ofAny(ofFunction, env);
        if (plannerMemoryMb != null) {
            variables.put("PYSPARK_PLANNER_MEMORY_MB", plannerMemoryMb);
        }
        return variables;
    }

    private Map<String, String> ofAny(Map<String, String> ofFunction, SparkEnv env) {
        SparkConf conf = env.conf();
        Map<String, String> variables = new HashMap<>(ofFunction);
        variables.put("SPARK_LOCAL_DIRS", String.join(",", env.blockManager().diskBlockManager().localDirsString()));
        variables.put("SPARK_BUFFER_SIZE", String.valueOf(conf.getInt("spark.buffer.size", 65536)));
        variables.put(
                "SPARK_AUTH_SOCKET_TIMEOUT",
                String.valueOf(conf.getTimeAsSeconds("spark.python.authenticate.socketTimeout", "15s")));
        variables.put("SPARK_JOB_ARTIFACT_UUID", Objects.requireNonNullElse(artifacts, "default"));
        if (reuse(env)) {
            variables.put("SPARK_REUSE_WORKER", "1");
        }
        if (hideTraceback) {
            variables.put("SPARK_HIDE_TRACEBACK", "1");
        }
        if (simplifiedTraceback) {
            variables.put("SPARK_SIMPLIFIED_TRACEBACK", "1");
        }
        return variables;
    }

    static boolean reuse(SparkEnv env) {
        return env.conf().getBoolean("spark.python.worker.reuse", true);
    }
}
