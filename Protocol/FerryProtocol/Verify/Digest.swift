/// The digest to compare records, or sets of records: 128 bits. The digest of a set is the sum of
/// all records' digests modulo 2¹²⁸. So the order does not matter, and a changed record is taken
/// out and put in again (SPEC.md §16).
package struct Digest: Hashable, Sendable, CustomStringConvertible {
  package var value: UInt128

  package init(_ value: UInt128) { self.value = value }

  /// The digest of no records.
  package static let zero = Digest(0)

  package static func += (sum: inout Digest, part: Digest) { sum.value &+= part.value }

  package static func -= (sum: inout Digest, part: Digest) { sum.value &-= part.value }

  /// Thirty-two lowercase hexadecimal digits, as on the wire.
  package var description: String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 32 - digits.utf8.count) + digits
  }

  /// Parses the wire form.
  package init?(_ text: String) {
    guard text.utf8.count == 32, text.utf8.allSatisfy({ hexValue($0) != nil }),
      let value = UInt128(text, radix: 16)
    else { return nil }
    self.value = value
  }

  /// Sixteen bytes, the most significant first, as stores keep it.
  package var bytes: [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  /// Creates a digest from those bytes; `nil` if there are not sixteen.
  package init?(bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 16 else { return nil }
    value = UInt128(bigEndian: bytes.loadUnaligned(as: UInt128.self))
  }
}

extension Digest {
  /// Creates the digest of a record visible to a reader; `nil` if there is none to see.
  package init?(of key: RecordKey, _ state: RecordState, with hasher: inout RecordHasher) {
    guard state.isAlive else { return nil }
    self = hasher.digest(of: key, state.columns.map { Column($0.name, $0.value) })
  }
}

/// A hasher of records, kept between records to use the memory again.
///
/// It hashes table, identifier, and each column that is not NULL, in the order of the names' bytes.
/// So an unwritten column equals one with NULL.
package struct RecordHasher {
  private var bytes: [UInt8] = []

  package init() { bytes.reserveCapacity(1_024) }

  /// Returns the digest of a record with these columns, in any order.
  package mutating func digest(of key: RecordKey, _ columns: [Column]) -> Digest {
    key.record.withBytes { begin(table: Self.framed(key.table), record: $0) }
    for column in columns.sortedByBytes() { add(Self.framed(column.name), column.value) }
    return finish()
  }

  // MARK: Part by part

  /// Returns a name in the form to hash: the length in four bytes, least significant first, and the
  /// UTF-8.
  package static func framed(_ name: Name) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(4 + name.utf8.count)
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: name.utf8.count))
    bytes.append(contentsOf: name.utf8)
    return bytes
  }

  /// Begins a record. Columns that are not NULL follow in the order of their names' bytes.
  package mutating func begin(table: [UInt8], record: UnsafeRawBufferPointer) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: table)
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: record.count))
    bytes.append(contentsOf: record)
  }

  package mutating func add(_ name: [UInt8], integer: Int64) {
    bytes.append(contentsOf: name)
    bytes.append(StorageClass.integer)
    bytes.append(littleEndian: UInt64(bitPattern: integer))
  }

  package mutating func add(_ name: [UInt8], real: Double) {
    bytes.append(contentsOf: name)
    bytes.append(StorageClass.real)
    bytes.append(littleEndian: real.bitPattern)
  }

  package mutating func add(_ name: [UInt8], text: UnsafeRawBufferPointer) {
    add(name, StorageClass.text, text)
  }

  package mutating func add(_ name: [UInt8], blob: UnsafeRawBufferPointer) {
    add(name, StorageClass.blob, blob)
  }

  package mutating func add(_ name: [UInt8], _ value: Value) {
    switch value {
    case .null: break
    case .integer(let integer): add(name, integer: integer)
    case .real(let real): add(name, real: real)
    case .text(var text): text.withUTF8 { add(name, text: UnsafeRawBufferPointer($0)) }
    case .blob(let blob): blob.withUnsafeBytes { add(name, blob: $0) }
    }
  }

  package func finish() -> Digest { Digest(bytes.withUnsafeBytes { SipHash.hash($0) }) }

  private mutating func add(
    _ name: [UInt8], _ storageClass: UInt8, _ content: UnsafeRawBufferPointer
  ) {
    bytes.append(contentsOf: name)
    bytes.append(storageClass)
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: content.count))
    bytes.append(contentsOf: content)
  }
}

/// The bytes to hash for a value's class; NULL is not hashed.
private enum StorageClass {
  static let integer: UInt8 = 1
  static let real: UInt8 = 2
  static let text: UInt8 = 3
  static let blob: UInt8 = 4
}

extension [UInt8] {
  @inline(__always)
  fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension [Column] {
  /// Returns the columns by the bytes of their names.
  package func sortedByBytes() -> [Column] {
    let ascend = indices.dropFirst().allSatisfy { self[$0 - 1].name < self[$0].name }
    return ascend ? self : sorted { $0.name < $1.name }
  }
}
