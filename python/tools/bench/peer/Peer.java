import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What the benchmark has Kafka do, by Kafka's own clients, in one process for the whole run: a command per line
 * in, "ok ..." or "error ..." per line out. Fields are separated by tabs.
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
        System.exit(0); // clients have threads that would go on
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

    /** Sends the lines of a file again and again until there are so many records, to each topic in turn. */
    private String load(String[] topics, Path file, long count, Map<String, String> settings) throws Exception {
        List<byte[]> payloads = Files.readAllLines(file).stream().map(String::getBytes).collect(Collectors.toList());
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

    /** One record at a time, acknowledged before the next; each holds the microsecond at which it was sent. */
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
