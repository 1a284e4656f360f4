package logdevice.spark;

import java.util.Map;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source for {@code format("logdevice")} when the jar is on the classpath.
 *
 * <p>Spark prefers a Java source to a Python source of the same name. Only the Python source knows logs: this class
 * asks it for the schema, and other classes of this package ask it for everything else.
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
