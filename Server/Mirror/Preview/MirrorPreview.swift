import FerryPostgres
import FerryProtocol

/// The effects of a mirror's creation, or of a mirror's next start, before it; pure.
package struct MirrorPreview: Sendable, Equatable {
  package struct Column: Sendable, Equatable {
    package var name: String
    /// The type, as in the SQL of the table.
    package var type: String
    /// The type on devices; `nil` if the column does not travel.
    package var device: DeclaredColumn.Affinity?
    package var isKey = false
    /// True if the mirror makes the column.
    package var isNew = false
    /// The reason against the column.
    package var reason: String?
  }

  /// A unique key or a foreign key.
  package struct Part: Sendable, Equatable {
    package var kind: String
    package var columns: [String]
    /// The table of a foreign key's rows.
    package var parent: String?
    /// The reason against the part; `nil` if devices get it.
    package var reason: String?
  }

  package struct Table: Sendable, Equatable {
    package var name: Name
    /// The rows, as estimated by PostgreSQL; `nil` if they cannot be read or do not travel.
    package var rows: Int64?
    /// True if a condition chooses the rows.
    package var isPart = false
    package var columns: [Column] = []
    package var parts: [Part] = []
    /// The space's definition of the table; `nil` if the space was not asked.
    package var definition: AdoptionPlan.Definition?
    /// True if the mirror only reads the rows, and compares them with a copy.
    package var isView = false
    /// The triggers made by the mirror; 0 if the log is read.
    package var triggers: Int64 = 0
  }

  /// A space of a group.
  package struct Space: Sendable, Equatable {
    /// The value of the column; `nil` for NULL.
    package var value: String?
    package var rows: Int64
    /// `nil` if the value gets no mirror.
    package var name: String?
    /// The reason against a mirror.
    package var reason: String?
  }

  package var name: String
  package var space: String
  /// `nil` if the space was not asked.
  package var spaceExists: Bool?
  package var capture: MirrorCapture
  package var role: PostgresRole
  package var tables: [Table] = []
  /// The spaces of a group.
  package var spaces: [Space] = []
  /// The reasons against it. Then nothing would change.
  package var faults: [String] = []
  /// Tables whose writes are not recorded, in a present mirror.
  package var stops: [MirrorStop] = []
  package var notes: [String] = []

  package init(name: String, space: String, capture: MirrorCapture, role: PostgresRole) {
    (self.name, self.space, self.capture, self.role) = (name, space, capture, role)
  }

  /// True if the command would begin, or if the mirror would run.
  package var isPossible: Bool { faults.isEmpty && stops.isEmpty }
}

extension MirrorPreview.Table {
  /// Creates the preview of a company's table.
  init(_ table: AdoptionPlan.Table, _ found: CompanyTable, _ left: [AdoptionPlan.LeftPart]) {
    name = table.name
    isPart = table.adoption.condition != nil || table.adoption.space != nil
    isView = table.adoption.view != nil
    let definition = table.definition
    columns = found.columns.map { column in
      MirrorPreview.Column(
        name: column.name, type: column.shownType,
        device: definition.affinity(of: Name(column.name)),
        isKey: found.key.contains { Name($0) == Name(column.name) },
        reason: left.first { $0.kind == .column && $0.columns == [column.name] }?.reason)
    }
    parts =
      Self.parts(definition.unique, definition.references)
      + left.filter { $0.kind != .column }.map {
        MirrorPreview.Part(kind: $0.kind.rawValue, columns: $0.columns, reason: $0.reason)
      }
  }

  /// Creates the preview of a mirror's own table.
  ///
  /// - Parameter present: the existing columns; empty if there is no table.
  init(_ table: MirrorTable, present: Set<String>) {
    name = table.name
    let keys = Set(table.key.map(\.name))
    columns = table.all.map { column in
      MirrorPreview.Column(
        name: column.name.text, type: column.type.shown, device: column.affinity,
        isKey: keys.contains(column.name), isNew: !present.contains(column.name.text))
    }
    parts = Self.parts(table.unique, table.references)
    definition = .equal
  }

  private static func parts(
    _ unique: [[Name]], _ references: [DeclaredReference]
  ) -> [MirrorPreview.Part] {
    let kinds = (AdoptionPlan.LeftPart.Kind.unique, AdoptionPlan.LeftPart.Kind.reference)
    return unique.map { MirrorPreview.Part(kind: kinds.0.rawValue, columns: $0.map(\.text)) }
      + references.map {
        MirrorPreview.Part(
          kind: kinds.1.rawValue, columns: $0.columns.map(\.text), parent: $0.table.text)
      }
  }
}

extension DeclaredTable {
  /// Returns the type of a column on devices; `nil` if there is no such column.
  fileprivate func affinity(of name: Name) -> DeclaredColumn.Affinity? {
    if let column = columns.first(where: { $0.name == name }) { return column.affinity }
    switch key {
    case .text(let key), .mapped(let key): return key == name ? .text : nil
    case .value(let columns): return columns.first { $0.name == name }?.affinity
    }
  }
}

extension MirrorType {
  /// The type in the SQL of a table.
  fileprivate var shown: String {
    self == .bytea ? "bytea" : String(decoded("").utf8.dropFirst("::".utf8.count)) ?? ""
  }
}
