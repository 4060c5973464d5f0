import FerryProtocol
import FerrySQLite

/// The SQL to read and write a table's rows under their records' identifiers.
extension TableSchema {
  /// Returns the identifier of a row.
  ///
  /// - Parameter side: the row's name in the statement, such as `t` or `NEW`.
  func record(of side: String? = nil) -> String {
    record(of: side, number: "ferry_record")
  }

  /// Returns the identifier of a row inside a trigger for it. The identifier of a bad key with several
  /// columns is a ``KeyCodec/Fault``.
  func recorded(_ side: String, by function: String = "ferry_record") -> String {
    // What a row was is known already.
    if side == "OLD" { return record(of: side, number: function, join: "ferry_joined") }
    return record(of: side, number: function, join: "ferry_joined") { key, numbers, place in
      referred(to: numbers, by: key.local, place)
    }
  }

  private func record(
    of side: String?, number: String, join: String = "ferry_join",
    reference: (KeyColumn, Name, String) -> String = { "ferry_record(\(literal($1)), \($2))" }
  ) -> String {
    func place(_ key: KeyColumn) -> String { (side.map { "\($0)." } ?? "") + quoted(key.local) }
    switch identity {
    case .text: return place(keys[0])
    case .mapped: return "\(number)(\(literal(name)), \(place(keys[0])))"
    case .value:
      let parts = keys.map { key in
        key.numbers.map { reference(key, $0, place(key)) } ?? place(key)
      }
      // The only part of a key is the same record as what it refers to.
      if parts.count == 1 && keys[0].numbers != nil { return parts[0] }
      return "\(parts.count == 1 ? "ferry_join" : join)(\(parts.joined(separator: ", ")))"
    }
  }

  /// Returns the record to which a column of a written row refers.
  ///
  /// - Parameters:
  ///   - numbers: the table of the record.
  ///   - column: the column's name in this file, for the message about a value that is no integer.
  ///   - value: the column's value, as SQL.
  fileprivate func referred(to numbers: Name, by column: Name, _ value: String) -> String {
    let place = quoted(literal: "table \(local): column \(column)")
    return "ferry_referred(\(literal(numbers)), \(value), \(place))"
  }

  /// Returns a column's value of a row inside a trigger for it, as the space knows it.
  func recorded(_ column: ColumnInfo, of side: String) -> String {
    guard side != "OLD", let numbers = column.numbers else { return column.read(side) }
    return referred(to: numbers, by: column.local, "\(side).\(quoted(column.local))")
  }

  /// Returns the condition to find a record's row.
  ///
  /// - Parameter parameter: the identifier, as SQL.
  func has(record parameter: String, in side: String? = nil) -> String {
    let isKey = zip(keys, keyValues(of: parameter, number: "ferry_number")).map { key, value in
      "\(side.map { "\($0)." } ?? "")\(quoted(key.local)) = \(value)"
    }
    return own(isKey.joined(separator: " AND "), in: side)
  }

  /// The key's columns.
  var keyList: [String] { keys.map { quoted($0.local) } }

  /// Returns the values of a written record's key.
  func keyValues(ofWritten parameter: String) -> [String] {
    keyValues(of: parameter, number: "ferry_chosen")
  }

  private func keyValues(of parameter: String, number: String) -> [String] {
    switch identity {
    case .text: return [parameter]
    case .mapped: return ["\(number)(\(literal(name)), \(parameter))"]
    case .value:
      if keys.count == 1, let numbers = keys[0].numbers {
        return ["\(number)(\(literal(numbers)), \(parameter))"]
      }
      return keys.enumerated().map { index, key in
        let place = "\(parameter), \(index), \(keys.count), \(key.affinity.rawValue)"
        let part =
          number == "ferry_chosen"
          ? "ferry_key(\(place), \(literal(key.local)))" : "ferry_part(\(place))"
        return key.numbers.map { "\(number)(\(literal($0)), \(part))" } ?? part
      }
    }
  }

}

private func literal(_ name: Name) -> String { quoted(literal: name.text) }

extension TableSchema.ColumnInfo {
  /// Returns the column's value as the space knows it.
  ///
  /// - Parameter side: the row's name in the statement.
  func read(_ side: String? = nil) -> String {
    let place = (side.map { "\($0)." } ?? "") + quoted(local)
    return numbers.map { "ferry_record(\(quoted(literal: $0.text)), \(place))" } ?? place
  }

  /// Returns the value to write for one of the space.
  func written(_ parameter: String) -> String {
    numbers.map { "ferry_chosen(\(quoted(literal: $0.text)), \(parameter))" } ?? parameter
  }

  /// Returns the value to compare with for one of the space.
  func sought(_ parameter: String) -> String {
    numbers.map { "ferry_number(\(quoted(literal: $0.text)), \(parameter))" } ?? parameter
  }
}
