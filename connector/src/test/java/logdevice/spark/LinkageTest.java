package logdevice.spark;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.Set;
import java.util.stream.Collectors;

import org.junit.Test;

public class LinkageTest {
    private static Set<String> called() {
        return Linkage.callsOf("logdevice/spark/LogDeviceTable").stream()
                .map(call -> call.owner() + "." + call.name())
                .collect(Collectors.toSet());
    }

    @Test
    public void everythingThatTasksAndPlannersCallIsLookedAt() {
        assertTrue(called().containsAll(Set.of(
                "org/apache/spark/api/python/PythonWorkerUtils.writeTaskContext",
                "org/apache/spark/api/python/PythonException.<init>",
                "org/apache/spark/SparkEnv.createPythonWorker",
                "org/apache/spark/sql/vectorized/ArrowColumnVector.<init>",
                "org/apache/spark/sql/execution/vectorized/ConstantColumnVector.setNull",
                "org/apache/spark/sql/execution/datasources/v2/python/UserDefinedPythonDataSource.createPythonFunction",
                "org/apache/arrow/vector/ipc/ArrowStreamReader.loadNextBatch")));
    }

    @Test
    public void whatThisSparkLacksIsNamed() {
        for (Linkage.Call missing : new Linkage.Call[] {
            new Linkage.Call("org/apache/spark/SparkEnv", "createPythonWorker", "()V"),
            new Linkage.Call("org/apache/spark/SparkEnv", "<init>", "(J)V"),
            new Linkage.Call("org/apache/spark/Moved", "get", "()V"),
            new Linkage.Call("org/apache/spark/SparkEnv", "get", "()Lorg/apache/spark/Moved;")
        }) {
            NoSuchMethodError error = assertThrows(NoSuchMethodError.class, () -> Linkage.require(missing));
            assertEquals(missing.toString(), error.getMessage());
        }
    }
}
