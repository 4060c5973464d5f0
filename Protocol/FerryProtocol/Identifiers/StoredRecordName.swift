/// A record's identifier in a server's tables: a UUID as sixteen bytes, any other as text.
///
/// Only RFC 9562's form with lower-case digits is stored as bytes, so every identifier is read back
/// as it was. Both databases sort texts by their bytes, then UUIDs by theirs.
///
/// - SQLite has text or a blob.
/// - PostgreSQL has a `bytea`: the text's UTF-8, or the byte FF and the sixteen bytes. No UTF-8
///   contains this byte (RFC 3629 §1).
package enum StoredRecordName: Sendable {
  case uuid(UniqueID)
  case text(Name)

  package init(_ name: Name) {
    let id = name.withBytes { UniqueID(lowercase: $0) }
    self = id.map { .uuid($0) } ?? .text(name)
  }

  package var name: Name {
    switch self {
    case .uuid(let id): Name(id.description)
    case .text(let name): name
    }
  }

  /// The first byte of a UUID in a `bytea`.
  private static let uuidMark: UInt8 = 0xFF

  /// Reads the content of a `bytea`.
  package init(bytes: UnsafeRawBufferPointer) {
    if bytes.first == Self.uuidMark,
      let id = UniqueID(bytes: UnsafeRawBufferPointer(rebasing: bytes[1...]))
    {
      self = .uuid(id)
    } else {
      self = .text(Name(String(decoding: bytes, as: UTF8.self)))
    }
  }

  /// Calls `body` with the content of a `bytea`.
  package func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    switch self {
    case .text(let name): return try name.withBytes(body)
    case .uuid(let id):
      return try withUnsafeTemporaryAllocation(byteCount: 17, alignment: 8) { room in
        room[0] = Self.uuidMark
        room.storeBytes(of: id.high.bigEndian, toByteOffset: 1, as: UInt64.self)
        room.storeBytes(of: id.low.bigEndian, toByteOffset: 9, as: UInt64.self)
        return try body(UnsafeRawBufferPointer(room))
      }
    }
  }
}

extension JSONWriter {
  /// Appends the identifier as a string.
  package mutating func string(_ record: StoredRecordName) {
    switch record {
    case .uuid(let id): string(id)
    case .text(let name): string(name)
    }
  }
}
