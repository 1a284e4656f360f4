import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Runs Kafka's own clients for the benchmark, in one process for the whole run. Each line of input is a command;
 * its answer is a line "ok ..." or "error ...". Fields are separated by tabs.
 */
final class Peer {
    private final String bootstrap;
    private final Admin admin;

    private Peer(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "default.api.timeout.ms", 20_000,
                "request.timeout.ms", 10_000));
    }

    public static void main(String[] arguments) {
        Peer peer = new Peer(arguments[0]);
        Scanner commands = new Scanner(System.in);
        while (commands.hasNextLine()) {
            String answer;
            try {
                answer = "ok\t" + peer.run(commands.nextLine().split("\t"));
            } catch (Exception problem) {
                answer = "error\t" + problem.toString().replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0); // the clients' threads would keep the process alive
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
            case "brokers":
                return String.valueOf(admin.describeCluster().nodes().get().size());
            case "create":
                return create(List.of(words[1].split(",")), Integer.parseInt(words[2]), Short.parseShort(words[3]),
                        pairs(words, 4));
            case "leaders":
                return admin.describeTopics(List.of(words[1])).allTopicNames().get().get(words[1]).partitions().stream()
                        .map(partition -> String.valueOf(partition.leader().id()))
                        .collect(Collectors.joining(","));
            case "load":
                return load(words[1].split(","), Path.of(words[2]), Long.parseLong(words[3]), pairs(words, 4));
            case "in_sync":
                return String.valueOf(admin.describeTopics(List.of(words[1])).allTopicNames().get().get(words[1])
                        .partitions().stream()
                        .allMatch(partition -> partition.leader() != null
                                && partition.isr().size() == partition.replicas().size()));
            case "delete":
                admin.deleteTopics(List.of(words[1])).all().get();
                return words[1];
            case "append":
                return append(words[1], payloads(Path.of(words[2])), Long.parseLong(words[3]),
                        Integer.parseInt(words[4]), pairs(words, 5));
            case "latency":
                return latency(words[1], payloads(Path.of(words[2])), Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]), pairs(words, 5));
            case "consume":
                return consume(words[1], pairs(words, 2));
            case "trickle":
                return trickle(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]), pairs(words, 4));
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private String create(List<String> topics, int partitions, short replication, Map<String, String> settings)
            throws Exception {
        admin.createTopics(topics.stream()
                .map(topic -> new NewTopic(topic, partitions, replication).configs(settings))
                .collect(Collectors.toList())).all().get();
        return String.join(",", topics);
    }

    /** Sends `count` records to the topics in turn: the lines of a file, again and again. */
    private String load(String[] topics, Path file, long count, Map<String, String> settings) throws Exception {
        List<byte[]> payloads = payloads(file);
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            for (long number = 0; number < count && failure.get() == null; number++) {
                byte[] payload = payloads.get((int) (number % payloads.size()));
                producer.send(new ProducerRecord<>(topics[(int) (number % topics.length)], payload), (at, problem) -> {
                    if (problem != null) {
                        failure.compareAndSet(null, problem);
                    }
                });
            }
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        return String.valueOf(count);
    }

    private static List<byte[]> payloads(Path file) throws Exception {
        return Files.readAllLines(file).stream().map(String::getBytes).collect(Collectors.toList());
    }

    private interface Writing {
        void run(KafkaProducer<byte[], byte[]> producer, int writer) throws Exception;
    }

    /** The seconds from the moment when all writers are connected until the last of them is done. */
    private double together(String topic, int writers, Map<String, String> settings, Writing writing)
            throws Exception {
        CountDownLatch connected = new CountDownLatch(writers);
        CountDownLatch go = new CountDownLatch(1);
        ExecutorService threads = Executors.newFixedThreadPool(writers);
        try {
            List<Future<?>> done = new ArrayList<>();
            for (int number = 0; number < writers; number++) {
                int writer = number;
                done.add(threads.submit(() -> {
                    try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
                        try {
                            producer.partitionsFor(topic);
                        } finally {
                            connected.countDown();
                        }
                        go.await();
                        writing.run(producer, writer);
                        return null;
                    }
                }));
            }
            connected.await();
            long started = System.nanoTime();
            go.countDown();
            for (Future<?> one : done) {
                one.get();
            }
            return (System.nanoTime() - started) / 1e9;
        } finally {
            threads.shutdownNow();
        }
    }

    /** Appends as fast as possible. Returns the seconds, the count, and the times of acknowledgements in ms. */
    private String append(
            String topic, List<byte[]> payloads, long count, int writers, Map<String, String> settings)
            throws Exception {
        AtomicReference<Exception> failure = new AtomicReference<>();
        Set<Long> progress = new ConcurrentSkipListSet<>();
        double seconds = together(topic, writers, settings, (producer, writer) -> {
            long[] last = {0}; // the last time noted, so that each millisecond is noted once
            for (long number = writer; number < count && failure.get() == null; number += writers) {
                byte[] payload = payloads.get((int) (number % payloads.size()));
                producer.send(new ProducerRecord<>(topic, payload), (at, problem) -> {
                    if (problem != null) {
                        failure.compareAndSet(null, problem);
                    }
                    long now = System.currentTimeMillis();
                    if (now != last[0]) {
                        last[0] = now;
                        progress.add(now);
                    }
                });
            }
            producer.flush();
        });
        if (failure.get() != null) {
            throw failure.get();
        }
        return seconds + "\t" + count + "\t" + joined(progress);
    }

    /** Appends one record at a time by each writer. Returns the milliseconds that each took. */
    private String latency(
            String topic, List<byte[]> payloads, int count, int writers, Map<String, String> settings)
            throws Exception {
        Double[] taken = new Double[count * writers];
        together(topic, writers, settings, (producer, writer) -> {
            for (int number = 0; number < count; number++) {
                byte[] payload = payloads.get(number % payloads.size());
                long started = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, payload)).get();
                taken[writer * count + number] = (System.nanoTime() - started) / 1e6;
            }
        });
        return joined(Arrays.asList(taken));
    }

    /** Reads from the oldest record to the current end. Returns what `append` does, and the bytes. */
    private String consume(String topic, Map<String, String> settings) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(settings);
        List<Long> progress = new ArrayList<>();
        long count = 0;
        long bytes = 0;
        long started = System.nanoTime();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(info -> new TopicPartition(topic, info.partition()))
                    .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long left = consumer.endOffsets(partitions).values().stream().mapToLong(end -> end).sum();
            while (count < left) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    bytes += record.value().length;
                }
                if (!records.isEmpty()) {
                    progress.add(System.currentTimeMillis());
                }
                count += records.count();
            }
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        return seconds + "\t" + count + "\t" + joined(progress) + "\t" + bytes;
    }

    private static String joined(Collection<?> numbers) {
        return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    /** Appends one record at a time, acknowledged before the next. Each holds its time in microseconds. */
    private String trickle(String topic, int count, long pauseMs, Map<String, String> settings) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            for (int number = 0; number < count; number++) {
                long sent = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
                producer.send(new ProducerRecord<>(topic, String.valueOf(sent).getBytes())).get();
                Thread.sleep(pauseMs);
            }
        }
        return String.valueOf(count);
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(settings);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static Map<String, String> pairs(String[] words, int from) {
        Map<String, String> found = new HashMap<>();
        for (String word : Arrays.asList(words).subList(from, words.length)) {
            found.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        }
        return found;
    }
}
