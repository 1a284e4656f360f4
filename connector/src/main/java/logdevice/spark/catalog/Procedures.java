package logdevice.spark.catalog;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** What {@code CALL logdevice.sys...} can do. */
final class Procedures {
    private Procedures() {}

    static Map<String, UnboundProcedure> of(Cluster cluster) {
        Map<String, UnboundProcedure> all = new LinkedHashMap<>();
        for (Procedure procedure : List.of(new Trim(cluster), new FindTime(cluster))) {
            all.put(procedure.name(), procedure);
        }
        return all;
    }

    /** A procedure that takes the same arguments always and answers with one row. */
    private abstract static class Procedure implements UnboundProcedure, BoundProcedure {
        final Cluster cluster;

        Procedure(Cluster cluster) {
            this.cluster = cluster;
        }

        abstract StructType answer();

        abstract Object[] row(InternalRow arguments);

        @Override
        public BoundProcedure bind(StructType given) {
            return this;
        }

        @Override
        public boolean isDeterministic() {
            return false;
        }

        @Override
        public Iterator<Scan> call(InternalRow arguments) {
            InternalRow row = new GenericInternalRow(row(arguments));
            return List.<Scan>of(new OneRow(answer(), row)).iterator();
        }
    }

    private record OneRow(StructType readSchema, InternalRow row) implements LocalScan {
        @Override
        public InternalRow[] rows() {
            return new InternalRow[] {row};
        }
    }

    private static final class Trim extends Procedure {
        Trim(Cluster cluster) {
            super(cluster);
        }

        @Override
        public String name() {
            return "trim";
        }

        @Override
        public String description() {
            return "trim(log, until): removes everything below the LSN `until` for good";
        }

        @Override
        public ProcedureParameter[] parameters() {
            return new ProcedureParameter[] {
                ProcedureParameter.in("log", DataTypes.StringType).comment("path or number").build(),
                ProcedureParameter.in("until", DataTypes.StringType).comment("the first LSN to keep").build()
            };
        }

        @Override
        StructType answer() {
            return new StructType()
                    .add("log", DataTypes.StringType)
                    .add("first_lsn", DataTypes.LongType)
                    .add("nodes_missed", DataTypes.StringType);
        }

        @Override
        Object[] row(InternalRow arguments) {
            JsonNode done = cluster.ask(
                    "trim", Map.of("log", arguments.getString(0), "until", arguments.getString(1)));
            return new Object[] {
                text(done.get("log")), done.get("first_lsn").asLong(), text(done.get("nodes_missed"))
            };
        }
    }

    private static final class FindTime extends Procedure {
        FindTime(Cluster cluster) {
            super(cluster);
        }

        @Override
        public String name() {
            return "find_time";
        }

        @Override
        public String description() {
            return "find_time(log, at): where to start to read everything appended at that time or later";
        }

        @Override
        public ProcedureParameter[] parameters() {
            return new ProcedureParameter[] {
                ProcedureParameter.in("log", DataTypes.StringType).comment("path or number").build(),
                ProcedureParameter.in("at", DataTypes.TimestampType).build()
            };
        }

        @Override
        StructType answer() {
            return new StructType()
                    .add("log", DataTypes.StringType)
                    .add("lsn", DataTypes.LongType)
                    .add("lsn_text", DataTypes.StringType);
        }

        @Override
        Object[] row(InternalRow arguments) {
            JsonNode found = cluster.ask(
                    "find_time", Map.of("log", arguments.getString(0), "timestamp_us", arguments.getLong(1)));
            return new Object[] {text(found.get("log")), found.get("lsn").asLong(), text(found.get("lsn_text"))};
        }
    }

    private static UTF8String text(JsonNode value) {
        return UTF8String.fromString(value.asText());
    }
}
