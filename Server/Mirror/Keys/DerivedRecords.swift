import FerryCryptography
import FerryProtocol

/// The identifiers of a company's rows whose keys are numbers of a sequence; pure (SPEC.md §27).
///
/// An identifier follows from the database, the table and the number: it needs no storage, and is
/// the same for each mirror and each adoption. It contains the number, so devices show the same one
/// if it is free.
///
/// | bits | contents |
/// |---|---|
/// | 48 | the beginning of a digest of the database's word, the schema and the table |
/// | 4 | 8, the version |
/// | 10 | more of the digest |
/// | 2 | the highest bits of the number |
/// | 2 | the variant |
/// | 30 | the next bits of the number |
/// | 32 | the lowest bits of the number |
struct DerivedRecords: Sendable, Equatable {
  /// The first half with zeros in place of the number.
  private let high: UInt64

  /// - Parameter origin: a word of the database; rows of two databases are never one record.
  init(origin: String, schema: String, table: Name) {
    let parts = [origin, schema, table.text].map { "\($0.utf8.count):\($0)" }
    let digest = SHA256.digest(of: parts.joined())
    let bits = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    high = bits & 0xFFFF_FFFF_FFFF_0FFC | 0x8000
  }

  /// Returns the identifier of the row with a number.
  func record(of number: Int64) -> String {
    let bits = UInt64(bitPattern: number)
    let low = 0x8000_0000_0000_0000 | (bits & 0x3FFF_FFFF_FFFF_FFFF)
    return UniqueID(high: high | bits >> 62, low: low).description
  }

  /// Returns the number of a row; `nil` for any other record.
  func number(of record: String) -> Int64? {
    guard let id = UniqueID(record), id.high & ~3 == high, id.low >> 62 == 2,
      id.description == record
    else { return nil }
    return Int64(bitPattern: (id.high & 3) << 62 | id.low & 0x3FFF_FFFF_FFFF_FFFF)
  }
}
