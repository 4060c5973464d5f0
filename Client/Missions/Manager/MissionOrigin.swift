import FerryProtocol

/// The source of a manager's missions.
enum MissionOrigin: Sendable {
  /// A catalogue, with signed manifests.
  case catalogue(any MissionCatalogue)
  /// The app on this device. It has the request behind each item; the manifests are made here.
  case app(@Sendable (MissionManifest, _ path: String) async throws(MissionError) -> ContentRequest)
}

extension MissionManager {
  /// Returns every published mission.
  nonisolated func published() async throws(MissionError) -> [MissionRecord] {
    guard case .catalogue(let catalogue) = origin else { return [] }
    return try await catalogue.missions()
  }

  /// Reads a manifest's document after all checks. One from a catalogue must be signed.
  nonisolated func checked(
    _ document: [UInt8], of record: MissionRecord
  ) async throws(MissionError) -> MissionManifest {
    guard case .catalogue(let catalogue) = origin else {
      return try ManifestCheck.manifest(document, of: record, in: DraftRule.space, isSigned: false)
    }
    return try ManifestCheck.manifest(document, of: record, in: try await catalogue.space())
  }

  /// Returns the source of an item.
  nonisolated func source(
    of item: MissionItem, in manifest: MissionManifest
  ) async throws(MissionError) -> DownloadSource {
    switch origin {
    case .catalogue: item.isHosted ? .blob(item.hash) : .published(item.url ?? "")
    case .app(let request): .request(try await request(manifest, item.path))
    }
  }
}
