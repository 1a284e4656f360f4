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

/**
 * The environment that Spark gives its own Python workers, so that the workers of this jar behave alike: the variables
 * that the driver knows, and the artifacts of its session.
 */
record WorkerSettings(Map<String, String> variables, String artifacts) implements Serializable {

    static WorkerSettings ofThisSession() {
        SQLConf conf = SQLConf.get();
        Option<JobArtifactState> state = JobArtifactSet.getCurrentJobArtifactState();
        String artifacts = state.isDefined() ? state.get().uuid() : null;
        Map<String, String> variables = new HashMap<>();
        variables.put("SPARK_JOB_ARTIFACT_UUID", Objects.requireNonNullElse(artifacts, "default"));
        if (conf.pysparkHideTraceback()) {
            variables.put("SPARK_HIDE_TRACEBACK", "1");
        }
        if (conf.pysparkSimplifiedTraceback()) {
            variables.put("SPARK_SIMPLIFIED_TRACEBACK", "1");
        }
        if (conf.pythonPlannerExecMemory().isDefined()) {
            variables.put("PYSPARK_PLANNER_MEMORY_MB", conf.pythonPlannerExecMemory().get().toString());
        }
        return new WorkerSettings(variables, artifacts);
    }

    Map<String, String> ofTask(Map<String, String> ofFunction, SparkEnv env, TaskContext task) {
        Map<String, String> all = ofAny(ofFunction, env);
        String memory = task.getLocalProperty("resource.pyspark.memory");
        if (memory != null) {
            int cores = Math.max(1, Integer.parseInt(Objects.requireNonNullElse(task.getLocalProperty("resource.executor.cores"), "1")));
            all.put("PYSPARK_EXECUTOR_MEMORY_MB", String.valueOf(Long.parseLong(memory) / cores));
        }
        return all;
    }

    Map<String, String> ofAny(Map<String, String> ofFunction, SparkEnv env) {
        SparkConf conf = env.conf();
        Map<String, String> all = new HashMap<>(ofFunction);
        all.putAll(variables);
        all.put("SPARK_LOCAL_DIRS", String.join(",", env.blockManager().diskBlockManager().localDirsString()));
        all.put("SPARK_BUFFER_SIZE", String.valueOf(conf.getInt("spark.buffer.size", 65536)));
        all.put(
                "SPARK_AUTH_SOCKET_TIMEOUT",
                String.valueOf(conf.getTimeAsSeconds("spark.python.authenticate.socketTimeout", "15s")));
        if (reuse(env)) {
            all.put("SPARK_REUSE_WORKER", "1");
        }
        return all;
    }

    static boolean reuse(SparkEnv env) {
        return env.conf().getBoolean("spark.python.worker.reuse", true);
    }
}
