import FerryProtocol

// The exchange with the server beside the replica's syncs.
extension Bundles {
  /// Leaves withdrawn versions, and sends unreported outcomes to the server. The replica calls this
  /// after each sync. Unsent outcomes stay for the next sync.
  public func synced() async {
    guard let names = try? await store.names() else { return }
    for name in names {
      try? await leaveWithdrawn(name)
      try? await sendReports(of: name)
    }
  }

  /// Sends unreported outcomes to the server. The replica calls this now and then while it is
  /// watched, since no sync follows in a quiet space. Returns true if the server has all outcomes.
  package func attend() async -> Bool {
    guard let names = try? await store.names() else { return false }
    var hasAll = true
    for name in names {
      // The reports of one bundle do not wait for those of another.
      do { try await sendReports(of: name) } catch { hasAll = false }
    }
    return hasAll
  }

  private func leaveWithdrawn(_ name: BundleName) async throws(BundleError) {
    let choice = try await choice(of: name)
    guard let active = choice.state.active, choice.isWithdrawn(active) else { return }
    try await leave(name, active, .absence)
  }

  private func sendReports(of name: BundleName) async throws {
    for outcomes in try await store.state(of: name).unreportedByRequest {
      try await surroundings.report(
        outcomes.map { outcome in
          BundleReport(
            BundleID(name, outcome.key.version), outcome.key.manifest,
            outcome.failure.map { .failure($0) } ?? .success, number: outcome.number)
        })
      try await store.change(name) { $0.report(outcomes) }
    }
  }
}
