package logdevice.spark;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.Test;

public class LinkageTest {
    private static Set<String> called() {
        return Linkage.callsOf("logdevice/spark/LogDeviceTable").stream()
                .map(call -> call.owner() + "." + call.name())
                .collect(Collectors.toSet());
    }

    @Test
    public void everythingThatTasksAndPlannersCallIsChecked() {
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
    public void anErrorNamesTheMethodThatThisSparkLacks() {
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

    @Test
    public void withoutAMethodOfSparkThereIsAWarning() {
        Warnings warnings = Warnings.of(Linkage.class);
        try {
            assertFalse(Linkage.hasAll(Set.of(new Linkage.Call("org/apache/spark/Moved", "get", "()V"))));
        } finally {
            warnings.stop();
        }
        assertEquals(
                List.of("This Spark differs from the one that the logdevice jar was built for "
                        + "(java.lang.NoSuchMethodError: org.apache.spark.Moved.get()V): logs are read without the "
                        + "jar, which is slower. Use the jar for this version of Spark."),
                warnings.messages);
    }

    @Test
    public void thisSparkHasEveryMethodThatTheJarCalls() {
        Warnings warnings = Warnings.of(Linkage.class);
        try {
            assertTrue(Linkage.isComplete());
        } finally {
            warnings.stop();
        }
        assertEquals(List.of(), warnings.messages);
    }

    @Test
    public void theOptionChoosesAndIgnoresCase() {
        assertTrue(LogDeviceTable.wantsJar(CaseInsensitiveStringMap.empty()));
        assertTrue(LogDeviceTable.wantsJar(new CaseInsensitiveStringMap(Map.of("surface", "jvm"))));
        assertFalse(LogDeviceTable.wantsJar(new CaseInsensitiveStringMap(Map.of("Surface", "Python"))));
    }

    /** Collects what a class logs. */
    private static final class Warnings extends AbstractAppender {
        private final List<String> messages = new ArrayList<>();
        private final Logger logger;

        private Warnings(Logger logger) {
            super("test", null, null, true, Property.EMPTY_ARRAY);
            this.logger = logger;
        }

        static Warnings of(Class<?> owner) {
            Logger logger = (Logger) org.apache.logging.log4j.LogManager.getLogger(owner);
            Warnings warnings = new Warnings(logger);
            warnings.start();
            logger.addAppender(warnings);
            logger.setLevel(org.apache.logging.log4j.Level.WARN);
            return warnings;
        }

        @Override
        public void append(LogEvent event) {
            messages.add(event.getMessage().getFormattedMessage());
        }

        @Override
        public void stop() {
            logger.removeAppender(this);
            super.stop();
        }
    }
}
