package logdevice.spark;

import java.util.Map;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What {@code format("logdevice")} means once the jar is on the classpath.
 *
 * <p>Spark prefers a Java source to a Python one of the same name. The Python one stays the only one that knows
 * logs: it is asked for the schema here, and for everything else by the classes below.
 */
public final class LogDeviceProvider implements TableProvider, DataSourceRegister {
    static final String NAME = "logdevice";

    @Override
    public String shortName() {
        return NAME;
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SparkInternals.schema(options);
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new LogDeviceTable(NAME, schema, Map.of(), Map.of(), Map::of);
    }
}
