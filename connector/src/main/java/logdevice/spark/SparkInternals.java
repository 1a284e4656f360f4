package logdevice.spark;

import java.io.DataOutputStream;
import java.util.HashMap;
import java.util.Map;

import org.apache.spark.QueryContext;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonException;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.PythonWorker;
import org.apache.spark.api.python.PythonWorkerUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonFilterPushdownResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceOffset;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;

/**
 * What we use of Spark that Spark does not promise to keep, and the check that it is still there.
 *
 * <p>Everything else in this package calls what is documented, or Python's planning classes by their constructors,
 * which {@link #verify} looks up as well.
 */
public final class SparkInternals {
    private static final String PUSHDOWN = "_pushdown";
    private static volatile boolean verified;

    private SparkInternals() {}

    /** A new Python source: it holds state of one scan, see {@link LogDeviceTable}. */
    static PythonDataSourceV2 pythonSource(String name) {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(name);
        return source;
    }

    static PythonDataSourceCreationResult create(CaseInsensitiveStringMap options) {
        return pythonSource(LogDeviceProvider.NAME)
                .source()
                .createDataSourceInPython(LogDeviceProvider.NAME, options, Option.empty());
    }

    /** The partitions of a batch, of what the filters leave over as far as Python understands them. */
    static PythonDataSourceReadInfo plan(
            CreatedSource created, StructType columns, CaseInsensitiveStringMap options, Filter[] filters) {
        UserDefinedPythonDataSource python = pythonSource(LogDeviceProvider.NAME).source();
        if (filters.length > 0) {
            Map<String, String> told = new HashMap<>(options.asCaseSensitiveMap());
            told.put(PUSHDOWN, "true");
            Option<PythonFilterPushdownResult> narrowed = python.pushdownFiltersInPython(
                    create(new CaseInsensitiveStringMap(told)), columns, filters);
            if (narrowed.isDefined()) {
                return narrowed.get().readInfo();
            }
        }
        return python.createReadInfoInPython(created.with(options), columns, false);
    }

    static InputPartition partition(int index, byte[] pickled) {
        return new PythonInputPartition(index, pickled);
    }

    static byte[] pickled(InputPartition partition) {
        return ((PythonInputPartition) partition).pickedPartition();
    }

    static int index(InputPartition partition) {
        return ((PythonInputPartition) partition).index();
    }

    static void register(TaskTotals totals) {
        totals.register(SparkSession.active().sparkContext(), Option.apply("logdevice"), false);
    }

    /** An error in Python, as Spark's own path would report it: PySpark knows it by its class and condition. */
    static RuntimeException pythonError(String traceback) {
        return new PythonException(
                "PYTHON_EXCEPTION",
                PythonUtils.toScalaMap(
                        Map.of("msg", "An exception was thrown from the Python worker", "traceback", traceback)),
                null,
                new QueryContext[0],
                "");
    }

    /** How Python runs for our source: which executable, with which files and environment. */
    public static PythonFunction functionOfSource(byte[] pickled) {
        return pythonSource(LogDeviceProvider.NAME).source().createPythonFunction(pickled);
    }

    public static boolean usesDaemon() {
        return SparkEnv.get().conf().getBoolean("spark.python.use.daemon", true);
    }

    /** Spark's analysis errors are checked exceptions, thrown by methods of Scala that do not say so. */
    @SuppressWarnings("unchecked")
    public static <E extends Throwable> RuntimeException sneaky(Throwable error) throws E {
        throw (E) error;
    }

    /** Throws a LinkageError that names what this Spark lacks; costs nothing after the first time. */
    static void verify() {
        if (verified) {
            return;
        }
        try {
            for (Used used : Used.values()) {
                used.lookUp();
            }
        } catch (ReflectiveOperationException error) {
            throw new NoSuchMethodError(error.getMessage());
        }
        verified = true;
    }

    /** Class, name and parameters of a method that is called somewhere in this package. */
    private enum Used {
        CREATE(UserDefinedPythonDataSource.class, "createDataSourceInPython", String.class,
                CaseInsensitiveStringMap.class, Option.class),
        PLAN(UserDefinedPythonDataSource.class, "createReadInfoInPython", PythonDataSourceCreationResult.class,
                StructType.class, boolean.class),
        PUSHDOWN(UserDefinedPythonDataSource.class, "pushdownFiltersInPython", PythonDataSourceCreationResult.class,
                StructType.class, Filter[].class),
        FUNCTION(UserDefinedPythonDataSource.class, "createPythonFunction", byte[].class),
        BATCH_PARTITION(PythonInputPartition.class, "pickedPartition"),
        STREAM_OFFSET(PythonStreamingSourceOffset.class, "json"),
        CREATE_WORKER(SparkEnv.class, "createPythonWorker", String.class, String.class,
                scala.collection.immutable.Map.class, boolean.class),
        RELEASE_WORKER(SparkEnv.class, "releasePythonWorker", String.class, String.class,
                scala.collection.immutable.Map.class, PythonWorker.class),
        DESTROY_WORKER(SparkEnv.class, "destroyPythonWorker", String.class, String.class,
                scala.collection.immutable.Map.class, PythonWorker.class),
        WORKER_SELECTOR(PythonWorker.class, "selector"),
        WRITE_FUNCTION(PythonWorkerUtils.class, "writePythonFunction", PythonFunction.class, DataOutputStream.class),
        REGISTER(AccumulatorV2.class, "register", SparkContext.class, Option.class, boolean.class);

        private final Class<?> owner;
        private final String method;
        private final Class<?>[] parameters;

        Used(Class<?> owner, String method, Class<?>... parameters) {
            this.owner = owner;
            this.method = method;
            this.parameters = parameters;
        }

        void lookUp() throws ReflectiveOperationException {
            owner.getMethod(method, parameters);
        }
    }
}
