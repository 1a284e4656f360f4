package logdevice.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;

import org.apache.xbean.asm9.ClassReader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether this Spark has everything that the classes of this jar were compiled against.
 *
 * <p>Most of what is used for Python workers is nothing that Spark promises to keep, and the JVM would notice what is
 * missing only when it is called, in a task. The constant pools of our classes name it all.
 */
final class Linkage {
    private static final Logger LOG = LoggerFactory.getLogger(Linkage.class);
    private static final String OURS = "logdevice/spark/";
    // Of constants, as chapter 4.4 of the specification of the JVM has them.
    private static final int CLASS = 7;
    private static final int METHOD = 10;
    private static final int INTERFACE_METHOD = 11;

    private static Boolean complete; // not known before somebody asks

    /** A method of another class, as it is called. */
    record Call(String owner, String name, String descriptor) implements Comparable<Call> {
        @Override
        public String toString() {
            return owner.replace('/', '.') + "." + name + descriptor;
        }

        @Override
        public int compareTo(Call other) {
            return toString().compareTo(other.toString());
        }
    }

    private Linkage() {}

    /** Looked up once. If not, logs can be read by Spark's own way for Python sources. */
    static synchronized boolean isComplete() {
        if (complete == null) {
            complete = hasAll(callsOf(OURS + "LogDeviceTable"));
        }
        return complete;
    }

    /** If not, a warning names the first that is missing. */
    static boolean hasAll(Set<Call> calls) {
        try {
            calls.forEach(Linkage::require);
            return true;
        } catch (LinkageError error) {
            LOG.warn(
                    "This Spark differs from the one that the logdevice jar was built for ({}): logs are read the "
                            + "slower way, without it. Take the jar that belongs to this version of Spark.",
                    error.toString());
            return false;
        }
    }

    static void require(Call call) {
        ClassLoader loader = Linkage.class.getClassLoader();
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        try {
            Class<?> owner = Class.forName(call.owner().replace('/', '.'), false, loader);
            MethodType type = MethodType.fromMethodDescriptorString(call.descriptor(), loader);
            if (call.name().equals("<init>")) {
                lookup.findConstructor(owner, type);
                return;
            }
            try {
                lookup.findVirtual(owner, call.name(), type);
            } catch (NoSuchMethodException | IllegalAccessException isStatic) {
                lookup.findStatic(owner, call.name(), type);
            }
        } catch (IllegalAccessException notPublic) {
            // It is there: a constructor or method that subclasses may call, as one of ours does.
        } catch (ReflectiveOperationException | TypeNotPresentException missing) {
            throw new NoSuchMethodError(call.toString());
        }
    }

    /** All calls to methods of Spark and Arrow in a class of ours and in all others of ours that it knows. */
    static Set<Call> callsOf(String first) {
        Set<Call> calls = new TreeSet<>();
        Set<String> seen = new HashSet<>(Set.of(first));
        Deque<String> left = new ArrayDeque<>(seen);
        while (!left.isEmpty()) {
            ClassReader pool = constantsOf(left.pop());
            char[] buffer = new char[pool.getMaxStringLength()];
            for (int index = 1; index < pool.getItemCount(); index++) {
                int item = pool.getItem(index); // 0 behind a constant that takes two places
                int tag = item == 0 ? 0 : pool.readByte(item - 1);
                if (tag == CLASS) {
                    String name = pool.readUTF8(item, buffer);
                    if (name.startsWith(OURS) && seen.add(name)) {
                        left.push(name);
                    }
                } else if (tag == METHOD || tag == INTERFACE_METHOD) {
                    int nameAndType = pool.getItem(pool.readUnsignedShort(item + 2));
                    Call call = new Call(
                            pool.readClass(item, buffer),
                            pool.readUTF8(nameAndType, buffer),
                            pool.readUTF8(nameAndType + 2, buffer));
                    if (call.owner().startsWith("org/apache/")) {
                        calls.add(call);
                    }
                }
            }
        }
        return calls;
    }

    private static ClassReader constantsOf(String name) {
        try (InputStream file = Linkage.class.getClassLoader().getResourceAsStream(name + ".class")) {
            return new ClassReader(file);
        } catch (IOException error) {
            throw new UncheckedIOException("the jar cannot be read", error);
        }
    }
}
