import FerryProtocol

/// Binds the name as text.
extension Name: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    withBytes { parameters.append(text: $0) }
  }
}

/// Binds the sixteen bytes as a blob.
extension UniqueID: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { parameters.append(blob: $0) }
  }
}

extension DeviceID: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) { value.bind(to: &parameters) }
}

extension OperationID: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) { value.bind(to: &parameters) }
}

/// Binds the value in the value's storage class.
extension Value: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    switch self {
    case .null: parameters.appendNull()
    case .integer(let integer): parameters.append(integer)
    case .real(let real): parameters.append(real)
    case .text(let text): text.bind(to: &parameters)
    case .blob(let blob): blob.bind(to: &parameters)
    }
  }
}

extension SQLiteStatement {
  /// Returns the column's value in the value's storage class.
  package func value(_ index: Int32) -> Value {
    switch type(index) {
    case .null: .null
    case .integer: .integer(int64(index))
    case .real: .real(double(index))
    case .text: .text(text(index))
    case .blob: .blob(blob(index))
    }
  }

  /// Returns the name in a text column; empty for NULL.
  package func name(_ index: Int32) -> Name { Name(text(index)) }

  /// Returns the name in a text column, if it has one.
  package func optionalName(_ index: Int32) -> Name? { optionalText(index).map { Name($0) } }

  /// Returns the identifier in a blob of sixteen bytes; `nil` for anything else.
  package func uniqueID(_ index: Int32) -> UniqueID? { UniqueID(bytes: blobBytes(index)) }

  /// Returns the timeline of a column, if there is one.
  package func timeline(_ index: Int32) -> Timeline? {
    optionalInt64(index).map { Timeline(UInt64(bitPattern: $0)) }
  }
}
