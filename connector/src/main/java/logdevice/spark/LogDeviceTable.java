package logdevice.spark;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One or more logs as a table: from {@code format("logdevice")}, or one log from the catalog.
 *
 * <p>Python plans every scan anew. Spark's own tables for Python sources keep a plan, with the filters that were pushed
 * into it, and use it for all later scans of the same DataFrame, which gives wrong results.
 */
public final class LogDeviceTable implements Table, SupportsRead, SupportsWrite {
    private static final Transform[] NO_TRANSFORMS = {};

    private final String name;
    private final StructType schema;
    private final Map<String, String> readOptions; // of the catalog; options of a query replace them
    private final Map<String, String> writeOptions;
    private final Supplier<Map<String, String>> properties; // each call asks the cluster

    public LogDeviceTable(
            String name,
            StructType schema,
            Map<String, String> readOptions,
            Map<String, String> writeOptions,
            Supplier<Map<String, String>> properties) {
        this.name = name;
        this.schema = schema;
        this.readOptions = Map.copyOf(readOptions);
        this.writeOptions = Map.copyOf(writeOptions);
        this.properties = properties;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    @Deprecated
    public StructType schema() {
        return schema;
    }

    @Override
    public Map<String, String> properties() {
        return properties.get();
    }

    @Override
    public Set<TableCapability> capabilities() {
        Set<TableCapability> all = EnumSet.copyOf(pythonTable().capabilities());
        if (!writeOptions.isEmpty()) {
            // Columns for writing differ from those for reading: Python checks them, and says what is wrong.
            all.add(TableCapability.ACCEPT_ANY_SCHEMA);
        }
        return all;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap said) {
        CaseInsensitiveStringMap all = with(readOptions, said);
        return wantsJar(all) && Linkage.isComplete()
                ? new LogDeviceScanBuilder(schema, all)
                : ((SupportsRead) pythonTable()).newScanBuilder(all);
    }

    /** Whether option surface allows the jar. The Python source refuses unknown values of the option. */
    static boolean wantsJar(CaseInsensitiveStringMap options) {
        return !options.getOrDefault("surface", "auto").equalsIgnoreCase("python");
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return ((SupportsWrite) pythonTable()).newWriteBuilder(new WriteInfo(info, with(writeOptions, info.options())));
    }

    private static CaseInsensitiveStringMap with(Map<String, String> options, CaseInsensitiveStringMap said) {
        if (options.isEmpty()) {
            return said;
        }
        Map<String, String> all = new HashMap<>(options);
        // Names of options ignore case: a name in another case must replace the one of the catalog.
        all.keySet().removeIf(said::containsKey);
        all.putAll(said.asCaseSensitiveMap());
        return new CaseInsensitiveStringMap(all);
    }

    private Table pythonTable() {
        return SparkInternals.pythonSource().getTable(schema, NO_TRANSFORMS, Map.of());
    }

    /** A write as Spark described it, with the options of the catalog added. */
    private record WriteInfo(LogicalWriteInfo said, CaseInsensitiveStringMap options) implements LogicalWriteInfo {
        @Override
        public String queryId() {
            return said.queryId();
        }

        @Override
        public StructType schema() {
            return said.schema();
        }
    }
}
