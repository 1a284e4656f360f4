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
 * What we use of Spark that Spark does not promise to keep; {@link Linkage} checks that it is there.
 */
public final class SparkInternals {
    private SparkInternals() {}

    /** A new Python source: it holds state of one scan, see {@link LogDeviceTable}. */
    static PythonDataSourceV2 pythonSource() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(LogDeviceProvider.NAME);
        return source;
    }

    /** The schema that Python gives the source, which checks the options. */
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
    static PythonFunction functionOfSource(byte[] pickled) {
        return pythonSource().source().createPythonFunction(pickled);
    }

    /** The class of the Python source, pickled. */
    static PythonFunction sourceClass() {
        return pythonSource().source().dataSourceCls();
    }

    /** Spark's analysis errors are checked exceptions, thrown by methods of Scala that do not say so. */
    @SuppressWarnings("unchecked")
    public static <E extends Throwable> RuntimeException sneaky(Throwable error) throws E {
        throw (E) error;
    }
}
