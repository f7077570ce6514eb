"""State stores over Delta tables (KIP-617): key-value, window, session, versioned; read lazily in both directions."""
