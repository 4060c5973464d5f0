import FerryProtocol
import SQLite

extension SQLiteStatement {
  /// Binds one value in its own storage class.
  package func bind(_ index: Int32, _ value: Value) {
    switch value {
    case .null: bindNull(index)
    case .integer(let integer): bind(index, integer)
    case .real(let real): bind(index, real)
    case .text(let text): bind(index, text)
    case .blob(let blob): bind(index, blob: blob)
    }
  }

  /// Returns the column's value in its own storage class.
  package func value(_ index: Int32) -> Value {
    switch type(index) {
    case .null: .null
    case .integer: .integer(int64(index))
    case .real: .real(double(index))
    case .text: .text(text(index))
    case .blob: .blob(blob(index))
    }
  }

  /// Binds a name as text.
  package func bind(_ index: Int32, _ name: Name) {
    name.withBytes { bind(index, text: $0) }
  }

  /// Binds a name as text, or NULL.
  package func bind(_ index: Int32, _ name: Name?) {
    if let name { bind(index, name) } else { bindNull(index) }
  }

  /// Returns the name in a text column; empty for NULL.
  package func name(_ index: Int32) -> Name { Name(text(index)) }

  /// Returns the name in a text column, if it has one.
  package func optionalName(_ index: Int32) -> Name? { optionalText(index).map { Name($0) } }

  func bind(_ index: Int32, _ id: UniqueID) {
    withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { bind(index, blob: $0) }
  }

  func bind(_ index: Int32, _ id: OperationID?) {
    if let id { bind(index, id.value) } else { bindNull(index) }
  }

  func uniqueID(_ index: Int32) -> UniqueID? { UniqueID(bytes: blobBytes(index)) }

  func timeline(_ index: Int32) -> Timeline? {
    optionalInt64(index).map { Timeline(UInt64(bitPattern: $0)) }
  }
}
