extension StoreOpener {
  /// Opens the store; throws the reason if this is not possible now.
  func openOnce() async throws(StoreError) -> any SyncStore {
    switch location {
    case .embedded(let directory):
      try await SQLiteStore(directory: directory, limits: limits, quotas: quotas)
    case .postgres(let addresses):
      try await PostgresStore(
        addresses, limits: limits, quotas: quotas, connections: connections,
        createsIfMissing: createsIfMissing)
    }
  }
}
