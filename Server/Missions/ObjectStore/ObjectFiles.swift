import FerryNetworking
import FerryPlatform
import FerryProtocol

/// Files as the objects of one bucket, below a prefix and by name. Failures are those of content.
package struct ObjectFiles: Sendable {
  /// Bytes of a part, and of the largest object sent whole.
  package static let partBytesStandard: Int64 = 16 << 20
  /// Parts of one object.
  private static let partsMax: Int64 = 9_000

  package let client: ObjectStoreClient
  private let partBytes: Int64

  /// - Parameter partBytes: A power of two, 5 MiB at least as stores require.
  package init(_ client: ObjectStoreClient, partBytes: Int64 = ObjectFiles.partBytesStandard) {
    (self.client, self.partBytes) = (client, partBytes)
  }

  package var place: String { client.settings.description }

  private func key(_ name: String) -> String { client.settings.prefix + name }

  // MARK: Reading

  /// Returns whether there is no object below the prefix.
  package func isEmpty() async throws(BlobError) -> Bool {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.list(after: nil, limit: 1).entries.isEmpty
    }
  }

  /// Returns the size of a file; `nil` if there is none.
  package func size(of name: String) async throws(BlobError) -> Int64? {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.size(of: key(name))
    }
  }

  /// Reads a file of no more than `limit` bytes; `nil` if there is none.
  package func content(of name: String, limit: Int) async throws(BlobError) -> [UInt8]? {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.content(of: key(name), limit: limit)
    }
  }

  /// Opens a range of a file of `size` bytes. Throws ``BlobError/missing(place:)`` if there is none
  /// with this size.
  package func read(
    _ name: String, _ range: Range<Int64>, of size: Int64
  ) async throws(BlobError) -> ContentReader {
    if range.isEmpty {
      return ContentReader { () async throws(BlobError) -> [UInt8]? in nil }
    }
    let body = try await asking { (client) async throws(ObjectStoreError) in
      try await client.read(key(name), range, of: size)
    }
    guard let body else { throw .missing(place: "\(place) \(name)") }
    let parts = BodyParts(body)
    let place = place
    return ContentReader { () async throws(BlobError) -> [UInt8]? in
      do throws(TransportError) {
        return try await parts.next()
      } catch {
        if error.kind == .cancelled { throw .cancelled }
        throw .remote(place: place, reason: error.message)
      }
    }
  }

  /// A file in a list.
  struct Listed: Sendable {
    var name: String
    var size: Int64
    /// Seconds since 1970.
    var modifiedAt: Int64
  }

  /// Returns the first `count` files whose names begin with `beginning`, from the one after `name`
  /// on.
  func first(
    _ count: Int, below beginning: String, after name: String?
  ) async throws(BlobError) -> [Listed] {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.list(below: beginning, after: name.map(key), limit: count).entries
    }.prefix(count).compactMap { listed($0, below: beginning) }
  }

  /// Returns an entry of a list; `nil` for one that was not requested.
  private func listed(_ entry: ObjectStoreClient.Entry, below beginning: String) -> Listed? {
    guard entry.key.begins(with: key(beginning)) else { return nil }
    let name = String(entry.key.dropFirst(client.settings.prefix.count))
    return Listed(name: name, size: entry.size, modifiedAt: entry.modifiedAt)
  }

  /// Calls `body` with each file whose name begins with `beginning`, in the order of their names.
  func forEach(
    below beginning: String, _ body: (Listed) async throws(BlobError) -> Void
  ) async throws(BlobError) {
    var last: String?
    repeat {
      let (entries, next) = try await asking { [last] (client) async throws(ObjectStoreError) in
        try await client.list(below: beginning, after: last)
      }
      for entry in entries {
        if let file = listed(entry, below: beginning) { try await body(file) }
      }
      last = next
    } while last != nil
  }

  /// Removes a file, if it is there.
  func remove(_ name: String) async throws(BlobError) {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.remove(key(name))
    }
  }

  // MARK: Keeping

  package func put(_ bytes: [UInt8], as name: String) async throws(BlobError) {
    try await asking { (client) async throws(ObjectStoreError) in
      try await client.put(bytes, as: key(name))
    }
  }

  /// Sends a file. The store checks the hashes.
  ///
  /// - Parameter digest: With the hashes of chunks of ``chunkSize(for:)``.
  package func put(
    file path: String, _ digest: FileDigest, as name: String
  ) async throws(BlobError) {
    try await asking { (client) async throws(ObjectStoreError) in
      if digest.chunks.isEmpty {
        try await client.put(
          file: path, size: digest.size, hash: digest.hash.bytes, as: key(name))
      } else {
        try await client.put(
          file: path, size: digest.size, parts: digest.chunks.map(\.bytes),
          of: chunkSize(for: digest.size), as: key(name))
      }
    }
  }

  /// Returns the bytes of each part in which a file of `size` bytes is sent.
  package func chunkSize(for size: Int64) -> Int64 {
    var bytes = partBytes
    while size / bytes >= Self.partsMax { bytes *= 2 }
    return bytes
  }

  /// Calls the store, and throws the errors as those of content.
  func asking<Answer: Sendable>(
    _ body: (ObjectStoreClient) async throws(ObjectStoreError) -> Answer
  ) async throws(BlobError) -> Answer {
    do {
      return try await body(client)
    } catch .cancelled {
      throw .cancelled
    } catch {
      throw .remote(place: place, reason: error.description)
    }
  }
}

/// A body for one reader, part by part.
private actor BodyParts {
  private var iterator: TransportBody.Iterator?

  init(_ body: TransportBody) { iterator = body.makeAsyncIterator() }

  func next() async throws(TransportError) -> [UInt8]? {
    guard var iterator else { return nil }
    self.iterator = nil
    let part = try await iterator.next()
    if part != nil { self.iterator = iterator }
    return part
  }
}
