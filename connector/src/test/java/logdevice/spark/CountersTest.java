package logdevice.spark;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.junit.Test;

/** The counters of tasks become Spark's metrics. */
public class CountersTest {
    @Test
    public void sparkGetsEveryMetricAndNoOther() {
        CustomTaskMetric[] told = TaskMetrics.of(Map.of("records", 3L, "unknown", 9L));
        assertEquals(
                List.of("records", "bytesReceived", "gaps", "lossGaps", "rewinds", "knownDown"),
                Arrays.stream(told).map(CustomTaskMetric::name).toList());
        assertEquals(3, told[0].value());
        assertEquals(0, told[1].value());
    }

    @Test
    public void sparksHistoryCanMakeEachMetricFromItsClassName() throws ReflectiveOperationException {
        for (CustomMetric metric : TaskMetrics.all()) {
            CustomMetric again = (CustomMetric)
                    Class.forName(metric.getClass().getName()).getConstructor().newInstance();
            assertEquals(metric.name(), again.name());
            assertEquals("5", again.aggregateTaskMetrics(new long[] {2, 3}));
        }
    }

    @Test
    public void theFieldsOfAnObjectAreTextsAndOfNothingElse() {
        assertEquals(
                Map.of("lagRecords", "12", "lagSeconds", "1.5"),
                Json.strings(Json.parse("{\"lagRecords\": 12, \"lagSeconds\": 1.5}")));
        assertEquals(Map.of(), Json.strings(Json.parse("{}").path("metrics")));
        assertEquals(Map.of(), Json.strings(Json.parse("null")));
    }

    @Test
    public void anErrorQuotesTextThatIsNotJson() {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> Json.parse("{oops"));
        assertEquals("Python sent what is not JSON: {oops", error.getMessage());
    }
}
