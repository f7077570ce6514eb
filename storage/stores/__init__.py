"""Opens Delta tables as state stores (KIP-617): key-value, window, session, versioned."""
