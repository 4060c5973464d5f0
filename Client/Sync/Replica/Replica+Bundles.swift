import FerryProtocol

/// Parts of the replica for bundles (SPEC.md §31).
extension Replica {
  /// Returns the device's present identifier in the space.
  package func deviceID() async throws -> DeviceID {
    try await thread.call { try $0.identity().device }
  }

  /// Sends outcomes of bundles to the server, as this device.
  package func report(_ reports: [BundleReport]) async throws {
    try await thread.exchange { [self] in
      let device = try await thread.run { try $0.identity().device }
      let api = try await engine.api()
      let request = BundleReportsRequest(device: device, reports: reports)
      _ = try await api.send(.post, "/bundle-reports", body: request.encoded())
    }
  }

  /// Notifies the companions after a sync of the replica.
  func notifyCompanions() async {
    for companion in companions.all { await companion.synced() }
  }
}
