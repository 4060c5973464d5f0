import FerryPlatform
import FerryProtocol

/// The type of a company's column on devices and in the mirror's SQL.
struct MirroredType: Sendable, Equatable {
  var affinity: DeclaredColumn.Affinity
  var type: MirrorType
}

/// The type of a company's column behind all domains.
struct CompanyType: Sendable, Equatable {
  var schema: String
  var name: String
  /// The parts without parts of their own: elements of arrays, bounds of ranges and fields of
  /// composite types. Types of `pg_catalog` have their name, enums are `enum`, and all others have
  /// a dot before the name.
  var parts: [String]
  /// The code of the kind in `pg_type.typtype`: `c` for a composite type, `r` for a range, `m` for a
  /// set of ranges.
  var kind = "b"
  /// The type of an array's elements, named as the parts are; `nil` for another type.
  var element: String?

  private var isComposed: Bool { element != nil || ["c", "r", "m"].contains(kind) }
  /// True for an enum.
  var isEnum: Bool { parts == ["enum"] && !isComposed }

  /// Types whose texts depend on no setting.
  private static let plain: Set<String> = [
    "bool", "int2", "int4", "int8", "oid", "xid", "xid8", "cid", "tid", "pg_lsn", "numeric",
    "text", "varchar", "bpchar", "name", "char", "uuid", "json", "jsonb", "jsonpath", "time",
    "timetz", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "tsvector", "tsquery", "xml",
    "int2vector", "oidvector", "pg_snapshot", "txid_snapshot", "enum", ".citext", ".ltree",
    ".hstore",
  ]
  /// Types whose values are short, alone or as the bounds of a range.
  private static let short: Set<String> = [
    "bool", "int2", "int4", "int8", "oid", "xid", "xid8", "cid", "tid", "pg_lsn", "name", "char",
    "uuid", "time", "timetz", "date", "timestamp", "timestamptz", "interval", "float4", "float8",
    "inet", "cidr", "macaddr", "macaddr8", "enum", "point", "line", "lseg", "box", "circle",
  ]
  /// Elements of arrays that JSON has as they are.
  private static let json: Set<String> = [
    "bool", "int2", "int4", "int8", "numeric", "float4", "float8", "date", "timestamp",
    "timestamptz",
  ]
  /// Types whose texts change with other objects of the database, or cannot be read.
  private static let unreadable: Set<String> = [
    "regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype", "regrole",
    "regnamespace", "regconfig", "regdictionary", "regcollation", "aclitem", "pg_node_tree",
    "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "pg_brin_bloom_summary",
    "pg_brin_minmax_multi_summary", "gtsvector",
  ]

  /// The reason if no text keeps each value; `nil` if one does.
  var obstacle: String? {
    if parts.contains(where: { $0 == "money" }) { return "depends on the locale of the database" }
    if parts.contains(where: Self.unreadable.contains) {
      return "depends on other objects of the database"
    }
    return isComposed && parts.contains { $0 == "xml" } ? "has XML in another type" : nil
  }

  /// The type whose texts travel; `nil` if there is an obstacle.
  var carried: CarriedType? {
    guard obstacle == nil, !parts.isEmpty else { return nil }
    let form: CarriedType.Form =
      if let element {
        Self.json.contains(element) ? .json : .texts
      } else if isComposed {
        .text
      } else {
        switch parts[0] {
        case "inet": .output
        case "xml": .xml
        default: .text
        }
      }
    return CarriedType(
      schema: schema, name: name, form: form,
      followsSettings: !parts.allSatisfy(Self.plain.contains),
      isShort: element == nil && kind != "m" && parts.count == 1 && Self.short.contains(parts[0]))
  }
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
    default: origin?.carried.map { MirroredType(affinity: .text, type: .carried($0)) }
    }
  }

  /// The type of a column of a key: equal values have one text.
  var keyType: MirroredType? {
    switch type {
    case "int2", "int4", "int8", "text", "varchar", "uuid", "date", "timestamp", "timestamptz":
      mirrored
    case "bpchar":
      // Compared as a text, it would need another index.
      MirroredType(
        affinity: .text, type: .carried(CarriedType(schema: "pg_catalog", name: "bpchar")))
    default: nil
    }
  }

  /// True if the column can name the space of a row.
  var canNameSpace: Bool { keyType.map { !$0.type.isTime } ?? false }

  /// True if a device's row needs a value. A trigger is expected to compute words for a search.
  var isRequiredOnDevices: Bool { isRequired && (type != "tsvector" || hasDefault) }

  /// The text of a default value if it is a number, a truth value, a text, a value of an enum or an
  /// empty array; `nil` for all others.
  var constantDefault: String? {
    guard let sql = defaultSQL else { return nil }
    switch type {
    case "bool": return ["true", "false"].contains(sql) ? sql : nil
    case "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar":
      if sql.wholeMatch(of: /[0-9]+(\.[0-9]+)?/) != nil { return sql }
      guard let constant = Self.constant(sql),
        constant.type.wholeMatch(of: /[a-z ]+(?:\([0-9,]+\))?/) != nil
      else { return nil }
      return constant.text
    default:
      if origin?.element != nil { return sql.begins(with: "'{}'::") ? "[]" : nil }
      return origin?.isEnum == true ? Self.constant(sql)?.text : nil
    }
  }

  /// Reads a quoted constant with a type; `nil` for any other SQL.
  private static func constant(_ sql: String) -> (text: String, type: Substring)? {
    // PostgreSQL reads scalars: a quote with a mark is a quote.
    let pattern = /'((?:[^']|'')*)'::([^']+)/.matchingSemantics(.unicodeScalar)
    guard let match = sql.wholeMatch(of: pattern) else { return nil }
    return (String(match.1).replacing(bytes: "''", with: "'"), match.2)
  }
}
