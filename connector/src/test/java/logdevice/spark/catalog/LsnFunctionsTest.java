package logdevice.spark.catalog;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.databind.JsonNode;
import logdevice.spark.Json;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.Test;

public class LsnFunctionsTest {
    // Python's tests use the same file.
    private static final JsonNode TEXTS = texts();

    private static JsonNode texts() {
        try (InputStream file = LsnFunctionsTest.class.getResourceAsStream("/lsn_texts.json")) {
            return Json.parse(new String(file.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Test
    public void anLsnIsTakenApart() {
        long e5n3 = (5L << 32) | 3;
        assertEquals(5, LsnFunctions.EpochOf.invoke(e5n3));
        assertEquals(3, LsnFunctions.OffsetOf.invoke(e5n3));
    }

    @Test
    public void anLsnIsWrittenAsPythonWritesIt() {
        TEXTS.get("written").properties().forEach(entry -> assertEquals(
                UTF8String.fromString(entry.getValue().asText()),
                LsnFunctions.TextOf.invoke(Long.parseLong(entry.getKey()))));
    }

    @Test
    public void everyFormOfAnLsnIsRead() {
        TEXTS.get("read").properties().forEach(entry -> assertEquals(
                entry.getKey(),
                Long.valueOf(entry.getValue().asLong()),
                LsnFunctions.Parse.invoke(UTF8String.fromString(entry.getKey()))));
        assertNull(LsnFunctions.Parse.invoke(null));
    }

    @Test
    public void anythingElseIsRefused() {
        for (JsonNode refused : TEXTS.get("refused")) {
            String text = refused.asText();
            IllegalArgumentException error = assertThrows(
                    text, IllegalArgumentException.class, () -> LsnFunctions.parse(text));
            assertEquals(
                    text + " is not an LSN; write it as e5n3, as an integer from 0 to 9223372036854775807, "
                            + "or as oldest or max",
                    error.getMessage());
        }
    }

    @Test
    public void eachTakesOneArgument() {
        LsnFunctions.BY_NAME.values().forEach(function -> assertThrows(
                UnsupportedOperationException.class, () -> function.bind(new StructType())));
    }
}
