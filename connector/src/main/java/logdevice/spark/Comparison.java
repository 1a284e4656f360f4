package logdevice.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** A filter that compares a column with values. Python makes ranges only of these. Times are in microseconds. */
record Comparison(String column, String operator, List<Object> values) {
    private static final Map<String, String> TURNED =
            Map.of("=", "=", "<=>", "<=>", "<", ">", "<=", ">=", ">", "<", ">=", "<=");
    private static final String IN = "IN";

    /** The predicate as a comparison; empty if it is of another kind, or compares with null. */
    static Optional<Comparison> of(Predicate predicate) {
        List<Expression> parts = new ArrayList<>(List.of(predicate.children()));
        String operator = predicate.name();
        if (!operator.equals(IN) && !TURNED.containsKey(operator)) {
            return Optional.empty();
        }
        if (!operator.equals(IN) && parts.get(0) instanceof Literal) {
            parts.add(parts.remove(0));
            operator = TURNED.get(operator);
        }
        if (!(parts.remove(0) instanceof NamedReference column) || column.fieldNames().length != 1) {
            return Optional.empty();
        }
        List<Object> values = new ArrayList<>();
        for (Expression part : parts) {
            if (!(part instanceof Literal<?> literal) || literal.value() == null) {
                return Optional.empty();
            }
            values.add(literal.value() instanceof Number number ? number : literal.value().toString());
        }
        return Optional.of(new Comparison(column.fieldNames()[0], operator, List.copyOf(values)));
    }

    @Override
    public String toString() {
        Object shown = operator.equals(IN) ? values : values.get(0);
        return column + " " + operator + " " + shown;
    }
}
