/// A type's object id, as in PostgreSQL's pg_type.dat: the built-in ones never change.
package struct PostgresType: Sendable, Hashable {
  package let oid: UInt32

  package static let bool = Self(oid: 16)
  package static let bytea = Self(oid: 17)
  package static let int8 = Self(oid: 20)
  package static let int2 = Self(oid: 21)
  package static let int4 = Self(oid: 23)
  package static let text = Self(oid: 25)
  package static let json = Self(oid: 114)
  package static let float8 = Self(oid: 701)
  package static let timestamptz = Self(oid: 1184)
  package static let uuid = Self(oid: 2950)

  package static let boolArray = Self(oid: 1000)
  package static let byteaArray = Self(oid: 1001)
  package static let int2Array = Self(oid: 1005)
  package static let int4Array = Self(oid: 1007)
  package static let textArray = Self(oid: 1009)
  package static let int8Array = Self(oid: 1016)
  package static let float8Array = Self(oid: 1022)
  package static let uuidArray = Self(oid: 2951)

  /// Types whose binary form is their UTF-8 text: text, varchar, name, bpchar, json, unknown, xml.
  var isTextual: Bool {
    switch oid {
    case 25, 1043, 19, 1042, 114, 705, 142: true
    default: false
    }
  }
}

/// Microseconds between 1970-01-01 and 2000-01-01, PostgreSQL's own origin of time.
let postgresEpochOffset: Int64 = 946_684_800_000_000
