package logdevice.spark.catalog;

import java.io.DataInputStream;
import java.io.DataOutputStream;

import logdevice.spark.SparkInternals;
import net.razorvine.pickle.Pickler;
import org.apache.spark.api.python.PythonWorkerUtils;
import org.apache.spark.api.python.SpecialLengths;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.execution.python.PythonPlannerRunner;

/** One question to Python, in a worker of Spark's pool: JSON there, JSON back. */
final class PythonCall extends PythonPlannerRunner<String> {
    private final String request;

    private PythonCall(String request) {
        super(SparkInternals.functionOfSource(new byte[0]));
        this.request = request;
    }

    static String ask(String request) {
        return new PythonCall(request).runInPython(SparkInternals.usesDaemon());
    }

    @Override
    public String workerModule() {
        return "pyspark_logdevice.catalog";
    }

    @Override
    public void writeToPython(DataOutputStream out, Pickler pickler) {
        PythonWorkerUtils.writeUTF(request, out);
    }

    @Override
    public String receiveFromPython(DataInputStream in) {
        String answer;
        try {
            int length = in.readInt();
            if (length != SpecialLengths.PYTHON_EXCEPTION_THROWN()) {
                return PythonWorkerUtils.readUTF(length, in);
            }
            answer = PythonWorkerUtils.readUTF(in);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException("the Python worker of the catalog ended before it answered", error);
        }
        throw failed(answer);
    }

    /** As Spark reports what goes wrong in a Python source: PySpark shows it as an AnalysisException. */
    static RuntimeException failed(String message) {
        throw SparkInternals.sneaky(QueryCompilationErrors.pythonDataSourceError("ask", "catalog", message));
    }
}
