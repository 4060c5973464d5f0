import FerryProtocol

/// Binds the blob or the text.
extension StoredRecordName: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    switch self {
    case .uuid(let id): id.bind(to: &parameters)
    case .text(let name): name.bind(to: &parameters)
    }
  }
}

extension SQLiteStatement {
  /// Returns the record's identifier in a column.
  package func recordName(_ index: Int32) -> StoredRecordName {
    if type(index) == .blob, let id = uniqueID(index) { return .uuid(id) }
    return .text(name(index))
  }
}
