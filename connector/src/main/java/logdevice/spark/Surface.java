package logdevice.spark;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The two ways to read: columnar through this jar, or Spark's own way for Python sources. */
enum Surface {
    JVM,
    PYTHON;

    private static final Logger LOG = LoggerFactory.getLogger(Surface.class);
    private static final String OPTION = "surface";
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    /** What the option says; values it does not know are the Python source's to refuse. */
    static Surface of(CaseInsensitiveStringMap options) {
        String said = options.getOrDefault(OPTION, "auto").toLowerCase(Locale.ROOT);
        return said.equals("python") ? PYTHON : JVM;
    }

    /** The first way, unless this Spark lacks the classes it was built for. */
    static <T> T jvmOr(Supplier<T> jvm, Supplier<T> python) {
        try {
            SparkInternals.verify();
            return jvm.get();
        } catch (LinkageError error) {
            if (WARNED.compareAndSet(false, true)) {
                LOG.warn(
                        "This Spark differs from the one that the logdevice jar was built for ({}): logs are read the "
                                + "slower way, without it. Take the jar that belongs to this version of Spark.",
                        error.toString());
            }
            return python.get();
        }
    }
}
