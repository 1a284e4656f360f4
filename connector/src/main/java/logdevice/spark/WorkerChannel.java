package logdevice.spark;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * The socket to a Python worker. A thread that waits on it checks every half second whether it should still wait, so a
 * task notices that it was cancelled even if Spark does not interrupt threads. Closing it does nothing, because the
 * worker may be used again.
 */
final class WorkerChannel implements ReadableByteChannel {
    private static final int LOOK_UP_MS = 500;

    private final SocketChannel socket;
    private final Selector selector;
    private final SelectionKey key;
    private final Runnable stillWanted; // throws if the result is no longer wanted
    private final DataInputStream data = new DataInputStream(Channels.newInputStream(this));

    WorkerChannel(SocketChannel socket, Selector selector, SelectionKey key, Runnable stillWanted) {
        this.socket = socket;
        this.selector = selector;
        this.key = key;
        this.stillWanted = stillWanted;
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
        while (true) {
            int count = socket.read(target);
            if (count != 0 || !target.hasRemaining()) {
                return count;
            }
            waitFor(SelectionKey.OP_READ);
        }
    }

    void write(ByteBuffer source) throws IOException {
        while (source.hasRemaining()) {
            if (socket.write(source) == 0) {
                waitFor(SelectionKey.OP_WRITE);
            }
        }
    }

    /** Reads numbers and bytes as Python's {@code write_int} and similar functions send them, and never reads ahead. */
    DataInputStream data() {
        return data;
    }

    /** Reads a length, and that many bytes. */
    byte[] readBytes() throws IOException {
        byte[] bytes = new byte[data.readInt()];
        data.readFully(bytes);
        return bytes;
    }

    String readText() throws IOException {
        return new String(readBytes(), StandardCharsets.UTF_8);
    }

    private void waitFor(int operation) throws IOException {
        key.interestOps(operation);
        selector.select(LOOK_UP_MS);
        selector.selectedKeys().clear();
        stillWanted.run();
    }

    @Override
    public boolean isOpen() {
        return socket.isOpen();
    }

    @Override
    public void close() {
        // The lease decides whether the worker is used again or ended.
    }
}
