package logdevice.spark;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.Test;

public class SurfaceTest {
    @Test
    public void theOptionChoosesAndIgnoresCase() {
        assertEquals(Surface.JVM, Surface.of(CaseInsensitiveStringMap.empty()));
        assertEquals(Surface.PYTHON, Surface.of(new CaseInsensitiveStringMap(Map.of("Surface", "Python"))));
        assertEquals(Surface.JVM, Surface.of(new CaseInsensitiveStringMap(Map.of("surface", "jvm"))));
    }

    @Test
    public void withoutAClassOfSparkItFallsBackAndWarnsOnce() {
        Warnings warnings = Warnings.of(Surface.class);
        try {
            for (int time = 0; time < 3; time++) {
                assertEquals("python", Surface.jvmOr(SurfaceTest::linkedToAnotherSpark, () -> "python"));
            }
        } finally {
            warnings.stop();
        }
        assertEquals(1, warnings.messages.size());
        assertEquals(
                "This Spark differs from the one that the logdevice jar was built for (java.lang.NoSuchMethodError: "
                        + "PythonScan.moved): logs are read the slower way, without it. Take the jar that belongs to "
                        + "this version of Spark.",
                warnings.messages.get(0));
    }

    private static String linkedToAnotherSpark() {
        throw new NoSuchMethodError("PythonScan.moved");
    }

    @Test
    public void otherErrorsAreNotHidden() {
        assertThrows(
                IllegalStateException.class,
                () -> Surface.jvmOr(
                        () -> {
                            throw new IllegalStateException("wrong option");
                        },
                        () -> "python"));
    }

    @Test
    public void thisSparkHasEverythingThatIsUsedOfIt() {
        SparkInternals.verify();
    }

    /** What a class logs while it is listened to. */
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
