package logdevice.spark.catalog;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The procedures for {@code CALL logdevice.sys...}. */
final class Procedures {
    private static final ProcedureParameter LOG =
            ProcedureParameter.in("log", DataTypes.StringType).comment("path or number").build();

    private Procedures() {}

    static Map<String, UnboundProcedure> of(Cluster cluster) {
        Procedure trim = new Procedure(
                cluster,
                "trim",
                "trim(log, until): removes everything below the LSN `until` for good",
                new ProcedureParameter[] {
                    LOG, ProcedureParameter.in("until", DataTypes.StringType).comment("the first LSN to keep").build()
                },
                new StructType()
                        .add("log", DataTypes.StringType)
                        .add("first_lsn", DataTypes.LongType)
                        .add("nodes_missed", DataTypes.StringType));
        Procedure findTime = new Procedure(
                cluster,
                "find_time",
                "find_time(log, at): the LSN from which to read everything appended at that time or later",
                new ProcedureParameter[] {LOG, ProcedureParameter.in("at", DataTypes.TimestampType).build()},
                new StructType()
                        .add("log", DataTypes.StringType)
                        .add("lsn", DataTypes.LongType)
                        .add("lsn_text", DataTypes.StringType));
        return new TreeMap<>(Map.of(trim.name(), trim, findTime.name(), findTime));
    }

    /** Calls the function of the same name in Python's catalog module, and returns its answer as one row. */
    private record Procedure(
            Cluster cluster, String name, String description, ProcedureParameter[] parameters, StructType answer)
            implements UnboundProcedure, BoundProcedure {
        @Override
        public BoundProcedure bind(StructType given) {
            return this;
        }

        @Override
        public boolean isDeterministic() {
            return false;
        }

        @Override
        public Iterator<Scan> call(InternalRow given) {
            Map<String, Object> arguments = new HashMap<>();
            for (int place = 0; place < parameters.length; place++) {
                DataType type = parameters[place].dataType();
                // Times are in microseconds.
                arguments.put(
                        parameters[place].name(),
                        type.equals(DataTypes.StringType) ? given.getString(place) : given.getLong(place));
            }
            JsonNode found = cluster.ask(name, arguments);
            Object[] row = Arrays.stream(answer.fields()).map(field -> value(field, found)).toArray();
            return List.<Scan>of(new OneRow(answer, new GenericInternalRow(row))).iterator();
        }

        private static Object value(StructField field, JsonNode found) {
            JsonNode value = found.get(field.name());
            return field.dataType().equals(DataTypes.LongType)
                    ? (Object) value.asLong() : UTF8String.fromString(value.asText());
        }
    }

    private record OneRow(StructType readSchema, InternalRow row) implements LocalScan {
        @Override
        public InternalRow[] rows() {
            return new InternalRow[] {row};
        }
    }
}
