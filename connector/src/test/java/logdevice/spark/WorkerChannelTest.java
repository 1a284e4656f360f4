package logdevice.spark;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskKilledException;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Runs over real sockets; the test is the worker at the other end. */
public class WorkerChannelTest {
    private final ExecutorService threads = Executors.newSingleThreadExecutor();
    private final TaskContext task = TaskContext$.MODULE$.empty();
    private SocketChannel worker;
    private SocketChannel socket;
    private Selector selector;
    private WorkerChannel channel;

    @Before
    public void connect() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            socket = SocketChannel.open(server.getLocalAddress());
            worker = server.accept();
        }
        socket.configureBlocking(false);
        selector = Selector.open();
        SelectionKey key = socket.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        channel = new WorkerChannel(socket, selector, key, task::killTaskIfInterrupted);
    }

    @After
    public void close() throws IOException {
        threads.shutdownNow();
        selector.close();
        socket.close();
        worker.close();
    }

    @Test
    public void numbersAndBytesAreReadHoweverTheyArrive() throws Exception {
        byte[] bytes = {1, 2, 3, 4, 5};
        ByteBuffer sent = ByteBuffer.allocate(21).putInt(-2).putLong(1L << 40).putInt(5).put(bytes).flip();
        Future<?> sending = threads.submit(() -> {
            while (sent.hasRemaining()) {
                worker.write(ByteBuffer.wrap(new byte[] {sent.get()}));
            }
            return null;
        });
        assertEquals(-2, channel.data().readInt());
        assertEquals(1L << 40, channel.data().readLong());
        assertArrayEquals(bytes, channel.readBytes());
        sending.get();
    }

    @Test
    public void aRequestLargerThanTheSocketTakesAtOnceArrivesWhole() throws Exception {
        byte[] request = new byte[8 << 20];
        new java.util.Random(7).nextBytes(request);
        Future<byte[]> received = threads.submit(() -> worker.socket().getInputStream().readNBytes(request.length));
        channel.write(ByteBuffer.wrap(request));
        assertArrayEquals(request, received.get());
    }

    @Test
    public void aWorkerThatEndsInTheMiddleOfANumberIsAnError() throws IOException {
        worker.write(ByteBuffer.wrap(new byte[] {0, 0}));
        worker.close();
        assertThrows(EOFException.class, channel.data()::readInt);
    }

    @Test
    public void aCancelledTaskStopsWaitingForAWorkerThatSaysNothing() {
        task.markInterrupted("cancelled by a test");
        TaskKilledException killed = assertThrows(TaskKilledException.class, channel.data()::readInt);
        assertEquals("cancelled by a test", killed.reason());
    }

    @Test
    public void aCancelledTaskStopsWaitingForAWorkerThatReadsNothing() {
        task.markInterrupted("cancelled by a test");
        assertThrows(TaskKilledException.class, () -> channel.write(ByteBuffer.allocate(64 << 20)));
    }

    @Test
    public void closingTheChannelDoesNotCloseTheSocket() {
        channel.close();
        assertEquals(true, channel.isOpen());
    }
}
