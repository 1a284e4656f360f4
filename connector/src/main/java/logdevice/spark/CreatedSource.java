package logdevice.spark;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What Python made of the options of a table: a data source, pickled.
 *
 * <p>Kept with the table, because asking Python takes time. Scans may share it: it knows nothing of the columns and
 * filters of any of them.
 */
final class CreatedSource {
    private CaseInsensitiveStringMap options;
    private PythonDataSourceCreationResult created;

    synchronized PythonDataSourceCreationResult with(CaseInsensitiveStringMap wanted) {
        if (created == null || !wanted.equals(options)) {
            created = SparkInternals.create(wanted);
            options = wanted;
        }
        return created;
    }
}
