@testable import FerryPostgres

/// Messages as a server sends them, made by hand.
enum PgoutputBytes {
  static func integer(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
  }

  static func text(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }

  static func begin(_ xid: UInt32, commit: UInt64, time: Int64 = 7) -> [UInt8] {
    Array("B".utf8) + integer(commit) + integer(time) + integer(xid)
  }

  static func commit(_ commit: UInt64, end: UInt64, time: Int64 = 7) -> [UInt8] {
    Array("C".utf8) + [0] + integer(commit) + integer(end) + integer(time)
  }

  static func relation(_ id: UInt32, _ columns: [String], identity: String = "f") -> [UInt8] {
    let head = Array("R".utf8) + integer(id) + text("public") + text("tasks") + Array(identity.utf8)
    return columns.reduce(head + integer(Int16(columns.count))) { bytes, name in
      bytes + [name == "id" ? 1 : 0] + text(name) + integer(UInt32(25)) + integer(Int32(-1))
    }
  }

  /// A row of texts; `nil` is NULL, and `…` is an unchanged value.
  static func row(_ values: [String?]) -> [UInt8] {
    values.reduce(integer(Int16(values.count))) { bytes, value in
      guard let value else { return bytes + Array("n".utf8) }
      if value == "…" { return bytes + Array("u".utf8) }
      return bytes + Array("t".utf8) + integer(Int32(value.utf8.count)) + Array(value.utf8)
    }
  }

  static func insert(_ id: UInt32, _ new: [String?]) -> [UInt8] {
    Array("I".utf8) + integer(id) + Array("N".utf8) + row(new)
  }

  static func update(_ id: UInt32, _ old: (String, [String?])?, _ new: [String?]) -> [UInt8] {
    let former = old.map { Array($0.0.utf8) + row($0.1) } ?? []
    return Array("U".utf8) + integer(id) + former + Array("N".utf8) + row(new)
  }

  static func delete(_ id: UInt32, _ kind: String, _ old: [String?]) -> [UInt8] {
    Array("D".utf8) + integer(id) + Array(kind.utf8) + row(old)
  }

  static func truncate(_ ids: [UInt32]) -> [UInt8] {
    ids.reduce(Array("T".utf8) + integer(Int32(ids.count)) + [1]) { $0 + integer($1) }
  }

  static func message(
    _ prefix: String, _ content: String, isTransactional: Bool = true
  ) -> [UInt8] {
    Array("M".utf8) + [isTransactional ? 1 : 0] + integer(UInt64(9)) + text(prefix)
      + integer(Int32(content.utf8.count)) + Array(content.utf8)
  }

  static let origin = Array("O".utf8) + integer(UInt64(3)) + text("other")
  static let type = Array("Y".utf8) + integer(UInt32(99)) + text("public") + text("mood")

  /// A message of each kind.
  static let all = [
    begin(5, commit: 10), commit(10, end: 12), relation(1, ["id", "title"]), origin, type,
    insert(1, ["a", nil]), update(1, nil, ["a", "…"]), update(1, ("O", ["a", "x"]), ["a", "y"]),
    update(1, ("K", ["a", nil]), ["b", "y"]), delete(1, "K", ["a", nil]),
    delete(1, "O", ["a", "x"]), truncate([1, 2]), message("ferry.mirror", "7"),
  ]

  static func values(_ texts: [String?]) -> [PgoutputValue] {
    texts.map { text in text.map { $0 == "…" ? .unchanged : .text(Array($0.utf8)[...]) } ?? .null }
  }
}
