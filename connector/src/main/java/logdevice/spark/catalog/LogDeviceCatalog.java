package logdevice.spark.catalog;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.StreamSupport;

import com.fasterxml.jackson.databind.JsonNode;
import logdevice.spark.Json;
import logdevice.spark.LogDeviceTable;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Logs as tables in SQL: the log /ads/clicks is the table {@code logdevice.ads.clicks}.
 *
 * <p>The setting {@code spark.sql.catalog.logdevice} selects this class. Settings below that name are options of the
 * source, such as the endpoint. Functions and procedures are in the namespace {@code sys}. The cluster is asked every
 * time; nothing is cached.
 */
public final class LogDeviceCatalog
        implements TableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
    private static final String SYSTEM = "sys";
    private static final String ELSEWHERE = "SQL can read, write and trim logs, and set their properties. To create, "
            + "rename or remove a log, use the `logdevice` command or the client.";

    private String name;
    private Cluster cluster;

    @Override
    public void initialize(String given, CaseInsensitiveStringMap configured) {
        name = given;
        cluster = new Cluster(Map.copyOf(configured.asCaseSensitiveMap()));
    }

    @Override
    public String name() {
        return name;
    }

    // Tables

    @Override
    public Identifier[] listTables(String[] namespace) {
        return StreamSupport.stream(children(namespace).get("logs").spliterator(), false)
                .map(log -> Identifier.of(namespace, log.asText()))
                .toArray(Identifier[]::new);
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        return load(table, null, null);
    }

    /** VERSION AS OF an LSN: the log up to that LSN, included. */
    @Override
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return load(table, version, null);
    }

    /** TIMESTAMP AS OF: what had been appended by that time. */
    @Override
    public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
        return load(table, null, micros);
    }

    private Table load(Identifier table, String version, Long micros) throws NoSuchTableException {
        JsonNode found = cluster.ask("table", Cluster.arguments(
                "name", parts(table), "options", cluster.options(), "version", version, "timestamp_us", micros));
        if (found.isNull()) {
            throw new NoSuchTableException(table);
        }
        StructType schema = (StructType) DataType.fromJson(found.get("schema").asText());
        return new LogDeviceTable(
                found.get("path").asText(),
                schema,
                Json.strings(found.get("read_options")),
                Json.strings(found.get("write_options")),
                () -> Json.strings(cluster.ask("properties", Cluster.arguments("name", parts(table)))));
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
        Map<String, String> attributes = new LinkedHashMap<>();
        for (TableChange change : changes) {
            if (change instanceof TableChange.SetProperty set) {
                attributes.put(set.property(), set.value());
            } else if (change instanceof TableChange.RemoveProperty removed) {
                attributes.put(removed.property(), null);
            } else {
                throw new UnsupportedOperationException("The columns of a log are always the same. " + ELSEWHERE);
            }
        }
        JsonNode isThere = cluster.ask(
                "set_properties", Cluster.arguments("name", parts(table), "properties", attributes));
        if (!isThere.asBoolean()) {
            throw new NoSuchTableException(table);
        }
        return loadTable(table);
    }

    @Override
    public boolean dropTable(Identifier table) {
        throw new UnsupportedOperationException(ELSEWHERE);
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException(ELSEWHERE);
    }

    // Namespaces

    @Override
    public String[][] listNamespaces() {
        return listNamespaces(new String[0]);
    }

    @Override
    public String[][] listNamespaces(String[] namespace) {
        return StreamSupport.stream(children(namespace).get("directories").spliterator(), false)
                .map(directory -> with(namespace, directory.asText()))
                .toArray(String[][]::new);
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        JsonNode found = children(namespace);
        if (!isSystem(namespace) && namespace.length > 0 && found.get("logs").isEmpty()
                && found.get("directories").isEmpty()) {
            throw new NoSuchNamespaceException(namespace);
        }
        return Map.of();
    }

    private JsonNode children(String[] namespace) {
        return cluster.ask("children", Cluster.arguments("directory", namespace));
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> metadata) {
        throw new UnsupportedOperationException(ELSEWHERE);
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
        throw new UnsupportedOperationException(ELSEWHERE);
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
        throw new UnsupportedOperationException(ELSEWHERE);
    }

    // Functions and procedures

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return isSystem(namespace) ? identifiers(LsnFunctions.BY_NAME) : new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
        UnboundFunction found = isSystem(function.namespace()) ? LsnFunctions.BY_NAME.get(function.name()) : null;
        if (found == null) {
            throw new NoSuchFunctionException(function);
        }
        return found;
    }

    @Override
    public Identifier[] listProcedures(String[] namespace) {
        return isSystem(namespace) || namespace.length == 0 ? identifiers(procedures()) : new Identifier[0];
    }

    @Override
    public UnboundProcedure loadProcedure(Identifier procedure) {
        UnboundProcedure found = isSystem(procedure.namespace()) ? procedures().get(procedure.name()) : null;
        if (found == null) {
            throw new IllegalArgumentException("There is no procedure " + procedure + "; the procedures in " + name
                    + "." + SYSTEM + " are " + String.join(", ", procedures().keySet()));
        }
        return found;
    }

    private Map<String, UnboundProcedure> procedures() {
        return Procedures.of(cluster);
    }

    private static Identifier[] identifiers(Map<String, ?> named) {
        return named.keySet().stream()
                .map(key -> Identifier.of(new String[] {SYSTEM}, key))
                .toArray(Identifier[]::new);
    }

    private static boolean isSystem(String[] namespace) {
        return namespace.length == 1 && namespace[0].equalsIgnoreCase(SYSTEM);
    }

    private static String[] parts(Identifier table) {
        return with(table.namespace(), table.name());
    }

    private static String[] with(String[] namespace, String last) {
        String[] all = java.util.Arrays.copyOf(namespace, namespace.length + 1);
        all[namespace.length] = last;
        return all;
    }
}
