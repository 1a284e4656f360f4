package logdevice.spark;

import java.util.Map;
import java.util.stream.IntStream;

import org.apache.spark.QueryContext;
import org.apache.spark.api.python.PythonException;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * Calls internal methods of Spark, which may change with its version; {@link Linkage} checks that they exist.
 */
public final class SparkInternals {
    private SparkInternals() {}

    /** A new Python source, because a source keeps the state of one scan, see {@link LogDeviceTable}. */
    static PythonDataSourceV2 pythonSource() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(LogDeviceProvider.NAME);
        return source;
    }

    /** The schema of the Python source, which also checks the options. */
    static StructType schema(CaseInsensitiveStringMap options) {
        return pythonSource()
                .source()
                .createDataSourceInPython(LogDeviceProvider.NAME, options, Option.empty())
                .schema();
    }

    static InputPartition[] partitions(byte[][] pickled) {
        return IntStream.range(0, pickled.length)
                .mapToObj(index -> new PythonInputPartition(index, pickled[index]))
                .toArray(InputPartition[]::new);
    }

    static byte[] pickled(InputPartition partition) {
        return ((PythonInputPartition) partition).pickedPartition();
    }

    /** An error in Python as Spark itself reports it: PySpark recognises it by its class and condition. */
    static RuntimeException pythonError(String traceback) {
        return new PythonException(
                "PYTHON_EXCEPTION",
                PythonUtils.toScalaMap(
                        Map.of("msg", "An exception was thrown from the Python worker", "traceback", traceback)),
                null,
                new QueryContext[0],
                "");
    }

    /** How Python is run for the source: the executable, files and environment. */
    static PythonFunction functionOfSource(byte[] pickled) {
        return pythonSource().source().createPythonFunction(pickled);
    }

    /** The class of the Python source, pickled. */
    static PythonFunction sourceClass() {
        return pythonSource().source().dataSourceCls();
    }

    /** Throws a checked exception that is not declared, as Scala's methods do with Spark's analysis errors. */
    @SuppressWarnings("unchecked")
    public static <E extends Throwable> RuntimeException sneaky(Throwable error) throws E {
        throw (E) error;
    }
}
