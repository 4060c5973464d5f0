import FerryCommandLine
import FerryMissionServer
import FerryNetworking
import FerrySyncServer
import Foundation

/// The options for the place of missions' content: `--blobs`, `--content` and related options, and
/// `--mission-key`.
enum ContentOptions {
  static let options =
    [
      OptionSpec(
        "blobs", value: "DIR",
        help: """
          The directory for missions' content, created if absent; by default `blobs` in the embedded \
          store's directory. With --database all servers share one directory. With --content \
          each server needs its own directory, for contents while they are checked.
          """,
        kind: .directory, environment: "FERRY_BLOBS"),
      OptionSpec(
        "content", value: "URL",
        help: """
          A bucket of an S3-compatible store for missions' content, s3://BUCKET/PREFIX, instead of a \
          directory.
          """, environment: "FERRY_CONTENT"),
    ] + ObjectStoreOptions.options("content") + [
      OptionSpec(
        "mission-key", value: "FILE",
        help: """
          The Ed25519 key (PEM) that signs missions; by default mission-key.pem in the directory of \
          --blobs, created at its first use. With --content, each server needs a copy.
          """,
        kind: .file, environment: "FERRY_MISSION_KEY")
    ]

  /// For `ferryd serve` only.
  static let redirectFlag = FlagSpec(
    "content-redirect",
    help: """
      Let devices fetch content from the store of --content itself: the server answers with an \
      address that is valid for 15 minutes. Devices must reach --content-endpoint.
      """, environment: "FERRY_CONTENT_REDIRECT")

  /// Returns the directory of the command line, or of the embedded store.
  static func directory(_ arguments: ParsedArguments) throws -> String? {
    try arguments.stringIfPresent("blobs") ?? StoreOptions.location(arguments).blobDirectory
  }

  /// Returns the client of the store in `--content`; `nil` without one.
  static func client(_ arguments: ParsedArguments) throws -> ObjectStoreClient? {
    guard let url = arguments.stringIfPresent("content") else { return nil }
    return try ObjectStoreOptions.client(url, "content", arguments)
  }

  /// Returns the store of content over a client and a directory of this machine.
  static func store(
    _ client: ObjectStoreClient, beside path: String, redirects: Bool = false
  ) throws(FerryServerError) -> any ContentStore {
    do {
      return ObjectContent(
        ObjectFiles(client), local: BlobThreads(try BlobDirectory(path)), redirects: redirects)
    } catch {
      throw .blobDirectory(path, reason: error.description)
    }
  }

  /// Returns the store in `--content`, after a request to it; `nil` without the option. Waits for
  /// an unreachable store, up to the time of `--start-wait`.
  static func remoteStore(
    _ arguments: ParsedArguments, redirects: Bool = false
  ) async throws -> (any ContentStore)? {
    guard let client = try client(arguments) else { return nil }
    guard let path = try directory(arguments) else {
      throw CommandFailure(
        "no directory is set in which uploaded content can be checked",
        why: "--content with --database needs --blobs",
        next: "add --blobs DIR; it is this server's own", status: .usage,
        code: "no_blob_directory")
    }
    let store = try store(client, beside: path, redirects: redirects)
    try await ObjectStoreOptions.waitUntilReady(client, "content", arguments)
    return store
  }
}
