import FerryPlatform
import FerryProtocol

/// The type of a company's column on devices and in the mirror's SQL.
struct MirroredType: Sendable, Equatable {
  var affinity: DeclaredColumn.Affinity
  var type: MirrorType
}

extension CompanyColumn {
  /// Decimal digits of a real number preserved by SQLite (IEEE 754, DBL_DIG).
  private static let exactDigits = 15

  var hasDefault: Bool { defaultSQL != nil || !identity.isEmpty || isGenerated }

  /// The type on devices; `nil` if none preserves each value.
  var mirrored: MirroredType? {
    switch type {
    case "int2", "int4", "int8": MirroredType(affinity: .integer, type: .bigint)
    case "float4", "float8": MirroredType(affinity: .real, type: .double)
    case "numeric":
      // A device's change of another column brings this one back as the device has it.
      (precision ?? .max) <= Self.exactDigits
        ? MirroredType(affinity: .numeric, type: .numeric)
        : MirroredType(affinity: .text, type: .numeric)
    case "bool": MirroredType(affinity: .integer, type: .boolean)
    case "text", "varchar", "bpchar": MirroredType(affinity: .text, type: .text)
    case "bytea": MirroredType(affinity: .blob, type: .bytea)
    case "json": MirroredType(affinity: .text, type: .json)
    case "jsonb": MirroredType(affinity: .text, type: .jsonb)
    case "timestamptz": MirroredType(affinity: .text, type: .timestamptz)
    case "timestamp": MirroredType(affinity: .text, type: .timestamp)
    case "date": MirroredType(affinity: .text, type: .date)
    case "uuid": MirroredType(affinity: .text, type: .uuid)
    default: nil
    }
  }

  /// The type of a column of a key: equal values have one text.
  var keyType: MirroredType? {
    switch type {
    case "int2", "int4", "int8", "text", "varchar", "uuid": mirrored
    default: nil
    }
  }

  /// The text of a default value if it is a number, a truth value or a text; `nil` for all others.
  var constantDefault: String? {
    guard let sql = defaultSQL else { return nil }
    switch type {
    case "bool": return ["true", "false"].contains(sql) ? sql : nil
    case "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar":
      if sql.wholeMatch(of: /[0-9]+(\.[0-9]+)?/) != nil { return sql }
      // PostgreSQL reads scalars: a quote with a mark is a quote.
      let pattern = /'((?:[^']|'')*)'::[a-z ]+(?:\([0-9,]+\))?/.matchingSemantics(.unicodeScalar)
      guard let match = sql.wholeMatch(of: pattern) else { return nil }
      return String(match.1).replacing(bytes: "''", with: "'")
    default: return nil
    }
  }
}
