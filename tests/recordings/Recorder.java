import java.io.BufferedWriter;
import java.io.Reader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;

import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;

/**
 * Runs one engine of Debezium for each NAME.properties in a folder, and writes what it captures into NAME.jsonl there, as the
 * converter of a Kafka Connect would send it: {"topic", "key", "value"}. What is no JSON is written in base64. With settings
 * that begin with "producer." it is sent to Kafka, and stands beside where the broker put it: {"partition", "offset"}. Ends
 * with its standard input.
 */
public class Recorder {
    public static void main(String[] arguments) throws Exception {
        List<DebeziumEngine<?>> engines = new ArrayList<>();
        ExecutorService threads = Executors.newCachedThreadPool();
        try (DirectoryStream<Path> found = Files.newDirectoryStream(Path.of(arguments[0]), "*.properties")) {
            for (Path file : found) {
                DebeziumEngine<?> engine = engine(file);
                engines.add(engine);
                threads.submit(engine);
            }
        }
        while (System.in.read() >= 0) {
        }
        for (DebeziumEngine<?> engine : engines) {
            try {
                engine.close();
            } catch (IllegalStateException ended) {
                System.err.println("LJ_ENDED before: " + ended.getMessage());
            }
        }
        threads.shutdown();
        System.exit(0);
    }

    private static DebeziumEngine<?> engine(Path file) throws Exception {
        Properties settings = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            settings.load(reader);
        }
        String name = file.getFileName().toString().replaceFirst("[.]properties$", "");
        Converter keys = converter(settings, "key.converter", true), values = converter(settings, "value.converter", false);
        Map<String, Object> sending = under(settings, "producer");
        KafkaProducer<byte[], byte[]> producer = sending.isEmpty() ? null
                : new KafkaProducer<>(sending, new ByteArraySerializer(), new ByteArraySerializer());
        BufferedWriter lines = Files.newBufferedWriter(file.resolveSibling(name + ".jsonl"));
        return DebeziumEngine.create(Connect.class).using(settings).using((success, message, error) -> {
            if (!success) {
                System.err.println("LJ_ENDED " + name + ": " + message);
                if (error != null) {
                    error.printStackTrace();
                }
            }
        }).notifying((List<ChangeEvent<SourceRecord, SourceRecord>> events, DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>> done) -> {
            try {
                for (ChangeEvent<SourceRecord, SourceRecord> event : events) {
                    SourceRecord record = event.value();
                    byte[] key = keys.fromConnectData(record.topic(), record.keySchema(), record.key());
                    byte[] value = values.fromConnectData(record.topic(), record.valueSchema(), record.value());
                    String place = "";
                    if (producer != null) {
                        RecordMetadata at = producer.send(new ProducerRecord<>(record.topic(), key, value)).get();
                        place = ",\"partition\":" + at.partition() + ",\"offset\":" + at.offset();
                    }
                    lines.write("{\"topic\":\"" + record.topic() + "\"" + place + ",\"key\":" + text(keys, key) + ",\"value\":"
                            + text(values, value) + "}\n");
                    done.markProcessed(event);
                }
                lines.flush();
                done.markBatchFinished();
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            } catch (java.util.concurrent.ExecutionException error) {
                throw new IllegalStateException("the broker did not take a record", error);
            }
        }).build();
    }

    private static Converter converter(Properties settings, String prefix, boolean isKey) throws Exception {
        Converter converter = (Converter) Class.forName(settings.getProperty(prefix)).getDeclaredConstructor().newInstance();
        converter.configure(under(settings, prefix), isKey);
        return converter;
    }

    private static Map<String, Object> under(Properties settings, String prefix) {
        return settings.stringPropertyNames().stream().filter(name -> name.startsWith(prefix + "."))
                .collect(Collectors.toMap(name -> name.substring(prefix.length() + 1), settings::getProperty));
    }

    private static String text(Converter converter, byte[] bytes) {
        if (bytes == null) {
            return "null";
        }
        if (converter instanceof org.apache.kafka.connect.json.JsonConverter) {
            return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
        }
        return '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }
}
