import FerryProtocol

/// The source of a manager's missions.
enum MissionOrigin: Sendable {
  /// A catalogue, with signed manifests.
  case catalogue(any MissionCatalogue)
  /// The app on this device. It has the request behind each item; the manifests are made here.
  case app(@Sendable (MissionManifest, _ path: String) async throws(MissionError) -> ContentRequest)
}

extension MissionOrigin {
  /// Returns every published mission.
  func published() async throws(MissionError) -> [MissionRecord] {
    guard case .catalogue(let catalogue) = self else { return [] }
    return try await catalogue.missions()
  }

  /// Reads a manifest's document after all checks. One from a catalogue must be signed.
  func checked(
    _ document: [UInt8], of record: MissionRecord
  ) async throws(MissionError) -> MissionManifest {
    guard case .catalogue(let catalogue) = self else {
      return try ManifestCheck.manifest(document, of: record, in: DraftRule.space, isSigned: false)
    }
    return try ManifestCheck.manifest(document, of: record, in: try await catalogue.space())
  }

  /// Returns the source of an item.
  func source(
    of item: MissionItem, in manifest: MissionManifest
  ) async throws(MissionError) -> DownloadSource {
    switch self {
    case .catalogue: item.isHosted ? .blob(item.hash) : .published(item.url ?? "")
    case .app(let request): .request(try await request(manifest, item.path))
    }
  }

  /// Returns why a mission failed: if the server rejects it and the catalogue lacks it, it was
  /// retracted.
  func reason(of error: MissionError, in id: MissionID) async -> MissionError {
    guard error.kind == .refused, let published = try? await published(),
      !published.contains(where: { $0.id == id })
    else { return error }
    return MissionError(
      .retracted, item: error.item, "it was retracted during the download: \(error.message)")
  }
}
