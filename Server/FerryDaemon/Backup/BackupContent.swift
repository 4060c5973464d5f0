import FerryMissionServer
import FerryProtocol
import Foundation

/// Copies of content between a backup and a server.
struct BackupContent: Sendable {
  /// Content of stores elsewhere, read at once.
  private static let copiesAtOnce = 8

  let source: any ContentStore
  let target: any ContentStore
  /// The owner of the uploads. Each run has a new one: parts of a killed run are not continued.
  private let owner = "backup" + UUID().uuidString.filter(\.isHexDigit)

  /// - Parameter done: gets the bytes copied since the last call.
  func copy(_ digests: [FileDigest], _ done: (Int64) -> Void) async throws {
    var files: [BlobSource] = []
    var others: [FileDigest] = []
    for digest in digests {
      guard let path = source.file(of: digest.hash) else {
        others.append(digest)
        continue
      }
      files.append(BlobSource(path: path, digest: digest))
    }
    if !files.isEmpty {
      try await target.store(files: files) { _ in }
      done(files.reduce(0) { $0 + $1.digest.size })
    }
    try await withThrowingTaskGroup(of: Int64.self) { group in
      for (index, digest) in others.enumerated() {
        if index >= Self.copiesAtOnce, let size = try await group.next() { done(size) }
        group.addTask {
          try await copy(digest)
          return digest.size
        }
      }
      for try await size in group { done(size) }
    }
  }

  /// Copies content part by part; the last part checks the hash.
  private func copy(_ digest: FileDigest) async throws {
    let (hash, size) = (digest.hash, digest.size)
    let upload = BlobDirectory.Upload(owner: owner, hash: hash, total: size, staysHere: true)
    let reader = try await source.read(hash, 0..<size, of: size)
    var end: Int64 = 0
    while let bytes = try await reader.next() {
      end = try await target.append(bytes, at: end, to: upload)
    }
    if size == 0 { _ = try await target.append([], at: 0, to: upload) }
    guard end == size else { throw BlobError.missing(place: "\(source.place) \(hash)") }
  }
}
