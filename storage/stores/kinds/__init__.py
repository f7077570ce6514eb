"""Offers the key-value, window, session and versioned stores of Kafka Streams."""
