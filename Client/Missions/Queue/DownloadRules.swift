/// The rules of a queue for the items of composed missions; a queue of downloads alone has none.
struct DownloadRules: Sendable {
  /// The limits; `nil` for those of the options.
  var limits: JobLimits?
  /// Returns the group of a download, for the limits of groups.
  var group: @Sendable (DownloadID) -> Int64? = { _ in nil }
  /// The encryption of the files; `nil` for none.
  var seal: ContentSeal?
  /// Bytes of the parts to hash while files are written; `nil` for none.
  var partSize: Int64?
  /// Returns the free bytes on the disk; `nil` for downloads that use all of it.
  var freeBytes: (@Sendable () async throws(DownloadError) -> Int64)?
  /// Bytes of the disk that stay free.
  var spaceMargin: Int64 = 0
}
