package logdevice.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Collects the columns and the filters of a query, from which Python plans what to read.
 *
 * <p>Spark still applies every filter itself. So the range that Python makes of a filter may be wider than the filter,
 * and a filter that Python does not understand does no harm.
 */
final class LogDeviceScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
    private final CaseInsensitiveStringMap options;
    private StructType columns;
    private Predicate[] pushed = {};

    LogDeviceScanBuilder(StructType schema, CaseInsensitiveStringMap options) {
        this.columns = schema;
        this.options = options;
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] wanted) {
        pushed = Arrays.stream(wanted)
                .filter(predicate -> Comparison.of(predicate).isPresent())
                .toArray(Predicate[]::new);
        return wanted;
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed;
    }

    @Override
    public void pruneColumns(StructType required) {
        columns = required;
    }

    @Override
    public Scan build() {
        List<Comparison> filters = Arrays.stream(pushed).map(Comparison::of).flatMap(Optional::stream).toList();
        return new LogDeviceScan(columns, options, filters);
    }
}
