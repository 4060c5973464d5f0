import FerryProtocol

/// Any object that returns columns for a table, and is filled from columns: a view, a view model, a
/// form.
///
/// A ``Record`` can also be created from a row. A `VirtualRecord` need not be Sendable, and may
/// belong to the main actor. Then exchange its columns with the database's closures:
///
/// ```swift
/// @MainActor @Observable final class NoteModel {
///   var id = ""
///   var title = ""
/// }
/// extension NoteModel: @MainActor MappedRecord {
///   static var fields: [RecordField<NoteModel>] {
///     [RecordField("id", \.id), RecordField("title", \.title)]
///   }
/// }
///
/// let columns = try RecordColumns(of: model)
/// try await replica.write { try Note.table.upsert(columns, in: $0) }
/// ```
public protocol VirtualRecord {
  /// Returns the values for the columns of `table`, and no others. See ``TableInfo/accepts(_:)``.
  ///
  /// - Throws: ``RecordError`` if a value cannot be stored.
  func columns(for table: TableInfo) throws -> RecordColumns

  /// Applies the values of `columns`: own ones, merged with those of another record. An object
  /// keeps its identity.
  ///
  /// - Throws: ``RecordError`` if a value does not fit.
  mutating func fill(from columns: RecordColumns) throws

  /// The tables for which ``columns(for:)`` returns columns by the table's name. A merge asks for
  /// all of them, and for ``TableInfo/unrestricted``. Of a ``TableRecord``, the record's table.
  static var tableNames: [Name] { get }
}

extension VirtualRecord {
  public static var tableNames: [Name] { [] }

  /// Joins the columns of another record to this one and returns the receiver, so calls chain. A
  /// value returns a changed copy.
  ///
  /// ```swift
  /// let note = try draft.merge(defaults).merge(edits, override: true)
  /// ```
  ///
  /// - Parameter override: without it, own values stay, and a nil on either side gives way to the
  ///   other side's value. With it, the other's values win, nils included.
  /// - Throws: ``RecordError`` if the receiver cannot accept a value, or the other record returns
  ///   no columns.
  public func merge(_ other: some VirtualRecord, override: Bool = false) throws -> Self {
    try joined(with: other, override)
  }

  private func joined(with other: some VirtualRecord, _ override: Bool) throws -> Self {
    var receiver = self
    try receiver.fill(from: allColumns().merged(with: other.givenColumns(), override: override))
    return receiver
  }

  /// Returns the columns for all tables.
  func allColumns() throws -> RecordColumns {
    try Self.tableNames.reduce(try columns(for: .unrestricted)) { all, table in
      all.merged(with: try columns(for: .unrestricted(named: table)))
    }
  }

  /// Returns the columns for all tables.
  ///
  /// - Throws: ``RecordError`` if there are none: a merge would have no effect.
  private func givenColumns() throws -> RecordColumns {
    let all = try allColumns()
    if all.isEmpty && !(self is RecordColumns) {
      throw RecordError(
        .invalid, table: "",
        "\(Self.self) hands over no columns without the name of a table; list its tables in "
          + "tableNames")
    }
    return all
  }
}

extension VirtualRecord where Self: AnyObject {
  /// Joins the columns of another record to this object and returns the object itself.
  @discardableResult
  public func merge(_ other: some VirtualRecord, override: Bool = false) throws -> Self {
    try joined(with: other, override)
  }
}
