package logdevice.spark;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;

import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.Test;

public class LogDeviceScanTest {
    private static final StructType SCHEMA =
            new StructType().add("lsn", DataTypes.LongType).add("log", DataTypes.StringType);
    private static final Expression LSN = Expressions.column("lsn");
    private static final Expression SEVEN = new LiteralValue<>(7L, DataTypes.LongType);
    private static final Expression EIGHT = new LiteralValue<>(8L, DataTypes.LongType);

    private static Predicate predicate(String name, Expression... children) {
        return new Predicate(name, children);
    }

    private static Scan scan(String logs, StructType columns, Predicate... filters) {
        var options = new CaseInsensitiveStringMap(Map.of("Logs", logs));
        LogDeviceScanBuilder builder = new LogDeviceScanBuilder(SCHEMA, options);
        builder.pushPredicates(filters);
        builder.pruneColumns(columns);
        return builder.build();
    }

    @Test
    public void scansThatReadTheSameAreEqual() {
        Scan one = scan("/a", SCHEMA, predicate(">", LSN, SEVEN));
        Scan other = scan("/a", SCHEMA, predicate(">", LSN, SEVEN));
        assertEquals(one, other);
        assertEquals(one.hashCode(), other.hashCode());
        assertEquals(one.toBatch(), other.toBatch());
    }

    @Test
    public void scansThatDifferInAnythingAreNotEqual() {
        Scan one = scan("/a", SCHEMA, predicate(">", LSN, SEVEN));
        for (Scan other : List.of(
                scan("/b", SCHEMA, predicate(">", LSN, SEVEN)),
                scan("/a", new StructType().add("lsn", DataTypes.LongType), predicate(">", LSN, SEVEN)),
                scan("/a", SCHEMA, predicate(">", LSN, EIGHT)),
                scan("/a", SCHEMA, predicate(">=", LSN, SEVEN)),
                scan("/a", SCHEMA))) {
            assertNotEquals(one, other);
        }
    }

    @Test
    public void aFilterIsPushedAndAppliedAgainBySpark() {
        LogDeviceScanBuilder builder = new LogDeviceScanBuilder(SCHEMA, CaseInsensitiveStringMap.empty());
        Predicate above = predicate(">", LSN, SEVEN);
        Predicate other = predicate("IS_NOT_NULL", LSN);
        assertArrayEquals(new Predicate[] {other, above}, builder.pushPredicates(new Predicate[] {other, above}));
        assertArrayEquals(new Predicate[] {above}, builder.pushedPredicates());
        assertEquals(
                "logdevice(jvm) columns [lsn, log], PushedFilters: [lsn > 7]", builder.build().description());
    }

    @Test
    public void comparisonsAreTheSameWhicheverSideTheColumnIsOn() {
        assertEquals(Comparison.of(predicate(">", LSN, SEVEN)), Comparison.of(predicate("<", SEVEN, LSN)));
        assertEquals(Comparison.of(predicate("<=", LSN, SEVEN)), Comparison.of(predicate(">=", SEVEN, LSN)));
        assertEquals(Comparison.of(predicate("=", LSN, SEVEN)), Comparison.of(predicate("=", SEVEN, LSN)));
    }

    @Test
    public void valuesAreWrittenAsPythonReadsThem() {
        Expression path = new LiteralValue<>(UTF8String.fromString("/a"), DataTypes.StringType);
        List<Comparison> filters = List.of(
                Comparison.of(predicate("IN", LSN, SEVEN, EIGHT)).orElseThrow(),
                Comparison.of(predicate("=", Expressions.column("log"), path)).orElseThrow());
        assertEquals(
                "[{\"column\":\"lsn\",\"operator\":\"IN\",\"values\":[7,8]},"
                        + "{\"column\":\"log\",\"operator\":\"=\",\"values\":[\"/a\"]}]",
                Json.write(filters));
    }

    @Test
    public void otherFiltersThanComparisonsWithValuesAreLeftToSpark() {
        Expression nothing = new LiteralValue<>(null, DataTypes.LongType);
        for (Predicate other : List.of(
                predicate("<=>", LSN, nothing),
                predicate("IN", LSN, SEVEN, nothing),
                predicate("=", LSN, Expressions.column("log")),
                predicate(">", Expressions.column("attributes.lsn"), SEVEN),
                predicate("STARTS_WITH", LSN, SEVEN),
                predicate("OR", predicate("=", LSN, SEVEN), predicate("=", LSN, EIGHT)))) {
            assertEquals(other.name(), Optional.empty(), Comparison.of(other));
        }
    }
}
