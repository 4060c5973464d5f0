import FerryCaching
import FerryMissions
import Foundation

/// Replacements for parts of a mission manager; `nil` keeps Ferry's.
///
/// ```swift
/// var parts = MissionParts()
/// parts.files = try DiskFileStore(root: "/mnt/card/missions")
/// let missions = try await replica.missionManager(parts: parts)
/// ```
public struct MissionParts: Sendable {
  /// The files of the content: by default a ``DiskFileStore`` beside the replica. An encrypted one
  /// has a separate key.
  public var files: (any MissionFiles)?
  /// The rows of missions: by default a ``SQLiteMissionStore`` beside the replica.
  public var store: (any MissionStore)?
  /// Makes the downloader: by default a ``ChunkedDownloader``. It gets the function for requests to
  /// the replica's server, with the token, and to other servers.
  public var downloader: (@Sendable (@escaping DownloadOpening) -> any Downloader)?
  /// The source of missions: by default the replica's last pull.
  public var catalogue: (any MissionCatalogue)?

  public init() {}

  /// Returns the files of the application, or those in `root`.
  func files(in root: String, key: [UInt8]?) throws(MissionError) -> any MissionFiles {
    if let files { return files }
    return try DiskFileStore(root: root, key: key)
  }

  /// Returns the rows of the application, or those in `root`.
  func store(in root: String) async throws(MissionError) -> any MissionStore {
    if let store { return store }
    do {
      // Files of the application do not create the folder.
      try FileManager.default.createDirectory(
        atPath: root, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw MissionError(.files, "\(root) cannot be created: \(error.localizedDescription)")
    }
    return try await SQLiteMissionStore.open(
      root + "/content.db", canonical: ContentAddress.canonical)
  }
}
