import FerryCryptography
import FerryNetworking
import FerryPlatform
import FerryProtocol
import Foundation

/// Missions' content in an S3-compatible store, below a prefix and with the names of a directory:
/// `ab/cd/abcd…`. Any number of nodes may share it.
///
/// The parts of an upload are objects of the bucket, so each node may take each part. The node with
/// the last part copies the whole into its own directory and checks the hash. Then it sends the
/// content to its place.
package final class ObjectContent: ContentStore {
  private static let looksAtOnce = 16
  private static let filesAtOnce = 4
  /// The validity of an address for a download, in seconds. A download in progress goes on.
  private static let addressValidity = 900

  package let local: BlobThreads
  private let files: ObjectFiles
  private let redirects: Bool
  private let staged: StagedUploads

  package var locksAllNodes: Bool { false }
  package var place: String { files.place }
  package var client: ObjectStoreClient { files.client }

  /// - Parameters:
  ///   - local: The directory for contents during their check, and for this machine's locks.
  ///   - redirects: Whether devices fetch content from the store itself.
  ///   - uncheckedMax: Bytes of parts that a space may send between two checks of the quota.
  package init(
    _ files: ObjectFiles, local: BlobThreads, redirects: Bool = false,
    uncheckedMax: Int64 = 256 << 20
  ) {
    (self.files, self.local, self.redirects) = (files, local, redirects)
    staged = StagedUploads(files: files, uncheckedMax: uncheckedMax)
  }

  // MARK: Names

  private func name(of hash: ContentHash) -> String {
    let name = hash.description
    return "\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
  }

  func key(of hash: ContentHash) -> String { client.settings.prefix + name(of: hash) }

  /// Returns the content of a key; `nil` for other objects.
  func hash(ofKey key: String) -> ContentHash? {
    guard let hash = key.words(at: "/").last.flatMap({ ContentHash(String($0)) }) else {
      return nil
    }
    return self.key(of: hash) == key ? hash : nil
  }

  // MARK: Reading

  package func file(of hash: ContentHash) -> String? { nil }

  package func address(of hash: ContentHash) -> String? {
    redirects ? client.address(of: key(of: hash), validity: Self.addressValidity) : nil
  }

  package func sizes(
    of hashes: [ContentHash]
  ) async throws(BlobError) -> [ContentHash: Int64] {
    let sizes = try await concurrently(hashes, Self.looksAtOnce) {
      (hash) async throws(BlobError) in
      try await self.files.size(of: self.name(of: hash))
    }
    return Dictionary(
      zip(hashes, sizes).compactMap { hash, size in size.map { (hash, $0) } },
      uniquingKeysWith: { one, _ in one })
  }

  package func content(of hash: ContentHash, limit: Int) async throws(BlobError) -> [UInt8]? {
    guard let bytes = try await files.content(of: name(of: hash), limit: limit) else { return nil }
    let found = ContentHash(of: bytes)
    guard found == hash else { throw .mismatch(expected: hash, found: found) }
    return bytes
  }

  package func read(
    _ hash: ContentHash, _ range: Range<Int64>, of size: Int64
  ) async throws(BlobError) -> ContentReader {
    try await files.read(name(of: hash), range, of: size)
  }

  package func isIntact(
    _ hash: ContentHash, read: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError) -> Bool? {
    guard let size = try await size(of: hash) else { return nil }
    let reader = try await self.read(hash, 0..<size, of: size)
    var digest = SHA256()
    while let bytes = try await reader.next() {
      digest.update(bytes)
      read(bytes.count)
    }
    return ContentHash(digest: digest.finish()) == hash
  }

  // MARK: Keeping

  package func append(
    _ bytes: [UInt8], at offset: Int64, to upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64 {
    if upload.staysHere {
      let spooling = try await local.run { (directory, _) throws(BlobError) in
        try directory.spool(bytes, at: offset, to: upload)
      }
      switch spooling {
      case .partial(let end): return end
      case .whole(let spooled): return try await finish(spooled, of: upload)
      }
    }
    if offset == 0, bytes.count == upload.total {
      let whole = try await local.run { (directory, _) throws(BlobError) in
        let copy = try directory.copy(of: upload)
        try copy.write(bytes, at: 0)
        return copy
      }
      return try await finish(whole, of: upload)
    }
    let end = try await staged.append(bytes, at: offset, to: upload)
    guard end == upload.total else { return end }
    let whole = try await staged.collect(upload, into: local)
    do {
      _ = try await finish(whole, of: upload)
    } catch {
      if case .mismatch = error { await staged.remove(upload) }
      throw error
    }
    await staged.remove(upload)
    return upload.total
  }

  package func offset(
    owner: String, _ hash: ContentHash
  ) async throws(BlobError) -> Int64 {
    try await staged.offset(owner: owner, hash)
  }

  /// Checks the whole of an upload, and sends it to the store. Returns the size.
  private func finish(
    _ spooled: SpooledUpload, of upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64 {
    let chunkSize = files.chunkSize(for: upload.total)
    // If the server is killed first, the file stays. The next copy overwrites it, or it expires.
    defer { spooled.remove() }
    let digest = try await local.runSlowly { () throws(BlobError) in
      try spooled.digest(chunkSize: chunkSize)
    }
    try await files.put(file: spooled.path, digest, as: name(of: digest.hash))
    return digest.size
  }

  package func store(_ bytes: [UInt8]) async throws(BlobError) -> ContentHash {
    let hash = ContentHash(of: bytes)
    if try await size(of: hash) == Int64(bytes.count) { return hash }
    try await files.put(bytes, as: name(of: hash))
    return hash
  }

  package func store(
    files sources: [BlobSource], kept: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError) {
    var seen: Set<ContentHash> = []
    let sources = sources.filter { seen.insert($0.digest.hash).inserted }
    _ = try await concurrently(sources, Self.filesAtOnce) { (file) async throws(BlobError) in
      if try await self.size(of: file.digest.hash) == file.digest.size { return }
      let chunkSize = self.files.chunkSize(for: file.digest.size)
      let digest = try await self.local.run { (_, cancellation) throws(BlobError) in
        try FileHasher.digest(of: file.path, chunkSize: chunkSize) { _ in
          !cancellation.isCancelled
        }
      }
      guard digest.hash == file.digest.hash else { throw BlobError.changed(path: file.path) }
      try await self.files.put(file: file.path, digest, as: self.name(of: digest.hash))
      kept(Int(digest.size))
    }
  }

  // MARK: Collecting

  package func page(
    from place: String?, before moment: Int64
  ) async throws(BlobError) -> ContentPage {
    let (entries, next) = try await files.asking { (client) async throws(ObjectStoreError) in
      try await client.list(after: place)
    }
    let old = entries.filter { $0.modifiedAt <= moment }
    return ContentPage(old.compactMap { hash(ofKey: $0.key) }, next: next)
  }

  package func remove(_ hashes: [ContentHash]) async throws(BlobError) -> [Int64] {
    let sizes = try await concurrently(hashes, Self.looksAtOnce) {
      (hash) async throws(BlobError) -> Int64? in
      let key = self.key(of: hash)
      return try await self.files.asking { (client) async throws(ObjectStoreError) in
        guard let size = try await client.size(of: key) else { return nil }
        try await client.remove(key)
        return size
      }
    }
    return sizes.compactMap(\.self)
  }

  package func removeUnfinished(
    before moment: Int64
  ) async throws(BlobError) -> UnfinishedRemoval {
    var removal = try await local.removeUnfinished(before: moment)
    let parts = try await staged.removeUnfinished(before: moment)
    removal.count += parts.count
    removal.failures += parts.failures
    let uploads = try await files.asking { (client) async throws(ObjectStoreError) in
      try await client.unfinished()
    }
    for upload in uploads where upload.begunAt <= moment && hash(ofKey: upload.key) != nil {
      do {
        try await files.asking { (client) async throws(ObjectStoreError) in
          try await client.abort(upload.upload, of: upload.key)
        }
        removal.count += 1
      } catch {
        removal.failures.append(error)
      }
    }
    return removal
  }
}
