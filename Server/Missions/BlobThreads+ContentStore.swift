import FerryProtocol
import Foundation
import Synchronization

// A directory as the store of content.
extension BlobThreads: ContentStore {
  package var local: BlobThreads { self }
  package var locksAllNodes: Bool { true }
  package var place: String { directory.path }

  /// Bytes for a reader at once.
  private static let partBytes = 256 << 10

  package func file(of hash: ContentHash) -> String? { directory.file(of: hash) }

  package func address(of hash: ContentHash) -> String? { nil }

  package func sizes(
    of hashes: [ContentHash]
  ) async throws(BlobError) -> [ContentHash: Int64] {
    try await run { (directory, cancellation) throws(BlobError) in
      var sizes: [ContentHash: Int64] = [:]
      for hash in hashes {
        guard !cancellation.isCancelled else { throw .cancelled }
        sizes[hash] = try directory.size(of: hash)
      }
      return sizes
    }
  }

  package func content(of hash: ContentHash, limit: Int) async throws(BlobError) -> [UInt8]? {
    try await run { (directory, _) throws(BlobError) -> [UInt8]? in
      try directory.content(of: hash, limit: limit)
    }
  }

  package func read(
    _ hash: ContentHash, _ range: Range<Int64>, of size: Int64
  ) async throws(BlobError) -> ContentReader {
    let path = directory.file(of: hash)
    guard try await self.size(of: hash) == size else { throw .missing(place: path) }
    let place = Mutex(range.lowerBound)
    return ContentReader { () async throws(BlobError) -> [UInt8]? in
      let from = place.withLock { $0 }
      let count = Int(min(Int64(Self.partBytes), range.upperBound - from))
      guard count > 0 else { return nil }
      let bytes = try await self.run { (_, _) throws(BlobError) in
        try FilePart.read(path, at: from, count: count)
      }
      guard bytes.count == count else { throw .changed(path: path) }
      place.withLock { $0 += Int64(count) }
      return bytes
    }
  }

  package func isIntact(
    _ hash: ContentHash, read: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError) -> Bool? {
    try await run { (directory, cancellation) throws(BlobError) in
      try directory.isIntact(hash) { count in
        read(count)
        return !cancellation.isCancelled
      }
    }
  }

  package func offset(
    owner: String, _ hash: ContentHash
  ) async throws(BlobError) -> Int64 {
    try await run { (directory, _) throws(BlobError) in try directory.offset(owner: owner, hash) }
  }

  package func store(_ bytes: [UInt8]) async throws(BlobError) -> ContentHash {
    try await run { (directory, _) throws(BlobError) in try directory.store(bytes) }
  }

  package func store(
    files: [BlobSource], kept: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError) {
    try await run { (directory, cancellation) throws(BlobError) in
      try directory.store(files: files) { count in
        kept(count)
        return !cancellation.isCancelled
      }
    }
  }

  /// A page is a shard; the place is the shard's number.
  package func page(
    from place: String?, before moment: Int64
  ) async throws(BlobError) -> ContentPage {
    guard let shard = UInt8(place ?? "0") else { return ContentPage([], next: nil) }
    let found = try await run { (directory, _) throws(BlobError) in
      try directory.content(inShard: shard, before: moment)
    }
    return ContentPage(found, next: shard == .max ? nil : String(shard + 1))
  }

  package func remove(_ hashes: [ContentHash]) async throws(BlobError) -> [Int64] {
    try await run { (directory, _) throws(BlobError) in
      var sizes: [Int64] = []
      for hash in hashes {
        if let size = try directory.remove(hash) { sizes.append(size) }
      }
      return sizes
    }
  }

  package func removeUnfinished(
    before moment: Int64
  ) async throws(BlobError) -> UnfinishedRemoval {
    try await run { (directory, _) throws(BlobError) in
      try directory.removeUnfinished(before: moment)
    }
  }
}
