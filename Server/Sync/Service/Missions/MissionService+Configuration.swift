import FerryMissionServer

extension MissionService {
  /// Creates the publisher of a server; `nil` if the server has no place for content.
  convenience init?(
    _ configuration: FerryServerConfiguration, store: any SyncStore
  ) throws(FerryServerError) {
    if let content = configuration.content {
      self.init(
        store: store, blobs: content, keyFile: configuration.missionKey,
        clock: configuration.clock, uploadQuota: configuration.uploadQuota)
      return
    }
    guard let path = configuration.blobs else { return nil }
    try self.init(
      store: store, directory: path, keyFile: configuration.missionKey,
      clock: configuration.clock, uploadQuota: configuration.uploadQuota)
  }

  /// Opens the directory, which is made when absent.
  package convenience init(
    store: any SyncStore, directory path: String, keyFile: String?, clock: ServiceClock,
    uploadQuota: Int64 = MissionService.uploadQuotaStandard
  ) throws(FerryServerError) {
    let directory: BlobDirectory
    do {
      directory = try BlobDirectory(path)
    } catch {
      throw .blobDirectory(path, reason: error.description)
    }
    self.init(
      store: store, blobs: BlobThreads(directory), keyFile: keyFile, clock: clock,
      uploadQuota: uploadQuota)
  }
}

extension StoreLocation {
  /// The default directory of missions' content; `nil` with a database.
  package var blobDirectory: String? {
    if case .embedded(let directory) = self { directory + "/blobs" } else { nil }
  }
}
