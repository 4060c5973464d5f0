import FerryCryptography
import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

/// The stores of content, which have one contract.
enum ContentKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case directory
  case objects

  var testDescription: String { rawValue }

  /// The kinds available here.
  static var available: [ContentKind] {
    ObjectStoreServer.isAvailable ? allCases : [.directory]
  }
}

/// A separate store of content, and files beside it.
struct ContentFixture {
  /// Small, so some megabytes have several parts; stores require 5 MiB.
  static let partBytes: Int64 = 8 << 20

  let folder: TemporaryDirectory
  let store: any ContentStore
  /// The client of the bucket; `nil` for a directory.
  let client: ObjectStoreClient?

  init(_ kind: ContentKind) async throws {
    folder = try TemporaryDirectory(prefix: "ferry-content")
    let local = BlobThreads(try BlobDirectory(folder.file("blobs").path))
    guard kind == .objects else {
      (store, client) = (local, nil)
      return
    }
    let server = try await ObjectStoreServer.forAll()
    let client = try Self.client(server.endpoint, bucket: try await server.bucket())
    self.client = client
    store = ObjectContent(ObjectFiles(client, partBytes: Self.partBytes), local: local)
  }

  /// A bucket of `server` over an address of it.
  init(over endpoint: String, bucket: String) throws {
    folder = try TemporaryDirectory(prefix: "ferry-content")
    let local = BlobThreads(try BlobDirectory(folder.file("blobs").path))
    let client = try Self.client(endpoint, bucket: bucket)
    self.client = client
    store = ObjectContent(ObjectFiles(client, partBytes: Self.partBytes), local: local)
  }

  static func client(
    _ endpoint: String, bucket: String, _ key: ObjectStoreServer.Key = ObjectStoreServer.key
  ) throws -> ObjectStoreClient {
    try ObjectStoreClient(
      ObjectStoreSettings("s3://\(bucket)/some/prefix", endpoint: endpoint, region: "us-east-1"),
      .fixed(AWSCredentials(accessKey: key.accessKey, secretKey: key.secretKey)),
      transport: SystemTransport(), sleep: { _ in })
  }

  /// Returns the objects of a store.
  func objects() throws -> ObjectContent { try #require(store as? ObjectContent) }

  /// Returns bytes of which no two parts are the same.
  static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var block = seededBytes(seed, min(count, 1 << 16))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + block.count)
    while bytes.count < count {
      bytes += block
      withUnsafeBytes(of: bytes.count) {
        if block.count >= 8 { block.replaceSubrange(0..<8, with: $0) }
      }
    }
    return Array(bytes.prefix(count))
  }

  /// Writes a file, and returns it as a source.
  func source(_ name: String, _ bytes: [UInt8]) throws -> BlobSource {
    let file = folder.file(name)
    try Data(bytes).write(to: file)
    return BlobSource(
      path: file.path, digest: FileDigest(size: Int64(bytes.count), hash: ContentHash(of: bytes)))
  }

  /// Sends the beginning of an upload, in parts as clients cut them.
  func send(_ bytes: ArraySlice<UInt8>, to upload: BlobDirectory.Upload) async throws {
    for start in stride(from: 0, to: bytes.count, by: 4 << 20) {
      let part = Array(bytes[start..<min(bytes.count, start + (4 << 20))])
      _ = try await store.append(part, at: Int64(start), to: upload)
    }
  }

  /// Puts other bytes where content is.
  func damage(_ hash: ContentHash, with bytes: [UInt8]) async throws {
    if let client {
      try await client.put(bytes, as: try objects().key(of: hash))
    } else {
      try Data(bytes).write(to: URL(filePath: try #require(store.file(of: hash))))
    }
  }

  /// Reads all pages of the listing.
  func listed(before moment: Int64 = .max) async throws -> [ContentHash] {
    var (found, place) = ([ContentHash](), String?.none)
    repeat {
      let page = try await store.page(from: place, before: moment)
      found += page.hashes
      place = page.next
    } while place != nil
    return found.sorted()
  }

  /// Reads a range whole.
  func read(_ hash: ContentHash, _ range: Range<Int64>, of size: Int64) async throws -> [UInt8] {
    let reader = try await store.read(hash, range, of: size)
    var bytes: [UInt8] = []
    while let part = try await reader.next() { bytes += part }
    return bytes
  }
}
