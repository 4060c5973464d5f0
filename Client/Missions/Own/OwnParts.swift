import FerryNetworking

/// The parts of composed missions.
package struct OwnParts: Sendable {
  /// The files of the content, and the encryption of fetched items.
  package var files: any MissionFiles
  /// The rows of complete missions.
  package var store: any MissionStore
  /// Fetches the items.
  package var downloader: any Downloader
  /// The calls on fetched items.
  package var system: any FileCalls

  package init(
    files: any MissionFiles, store: any MissionStore, downloader: any Downloader,
    system: any FileCalls = SystemFileCalls()
  ) {
    (self.files, self.store, self.downloader, self.system) = (files, store, downloader, system)
  }

  /// Returns Ferry's downloader: a request goes back to the queue after two failures in a row, and
  /// others run meanwhile.
  package static func downloader(
    _ open: @escaping DownloadOpening, in surroundings: DownloadSurroundings = .system
  ) -> any Downloader {
    var settings = DownloadSettings()
    settings.retry.attemptsMax = 2
    settings.retry.retryAfterMax = .seconds(10)
    return ChunkedDownloader(settings: settings, surroundings: surroundings, open: open)
  }
}

extension OwnParts {
  /// Ensures that the key fits the stored content.
  func checkSeal() async throws(MissionError) {
    let proof = try await store.makeSetting("sealing", files.sealProof())
    if files.accepts(sealProof: proof) { return }
    // A process that only read has not decided whether later content is sealed.
    guard try await store.remakeSetting("sealing", files.sealProof()) else {
      throw MissionError(
        .wrongKey,
        files.isSealed
          ? "the key does not fit the stored content"
          : "the stored content is encrypted; give its key")
    }
  }
}
