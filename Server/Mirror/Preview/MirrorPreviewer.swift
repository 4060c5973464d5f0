import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Looks at both sides before a mirror is made. It changes nothing: it needs no right to write in
/// the database, makes no folder, and is no device of the space.
package struct MirrorPreviewer: Sendable {
  let configuration: MirrorConfiguration
  private let folder: MirrorFolder
  private let token: String?

  package init(_ configuration: MirrorConfiguration, in folder: MirrorFolder, token: String?) {
    (self.configuration, self.folder, self.token) = (configuration, folder, token)
  }

  // MARK: Adopting

  /// Returns the effects of ``MirrorAdopter/begin()`` and of the upload of the rows.
  package func adoption() async throws -> MirrorPreview {
    var (preview, plan) = try await tables()
    preview.faults += faults { try folder.checkIsFree(for: try settings(for: plan)) }
    if folder.hasFormer(of: configuration) {
      preview.notes.append(
        "the tables were adopted before: they are compared with the last rows of the removed mirror"
      )
    }
    try await addSpace(to: &preview, plan)
    return preview
  }

  /// Returns the effects of an adoption by a group.
  package static func adoption(
    _ group: MirrorGroupConfiguration, in folder: MirrorFolder
  ) async throws -> MirrorPreview {
    let previewer = MirrorPreviewer(group.withoutValue, in: folder, token: group.token)
    var (preview, plan) = try await previewer.tables()
    preview.spaces = try await previewer.spaces(of: group, preview.tables)
    for (place, space) in preview.spaces.prefix(spacesMax).enumerated() {
      guard let name = space.name else { continue }
      var asked = preview
      (asked.space, asked.faults) = (name, [])
      try await previewer.addSpace(to: &asked, plan)
      preview.spaces[place].reason = asked.faults.first
    }
    if preview.spaces.count > spacesMax {
      preview.notes.append("only the first \(spacesMax) spaces were asked for their definitions")
    }
    return preview
  }

  /// The most spaces of a group asked for their definitions.
  private static let spacesMax = 200

  /// Returns the settings of the mirror for the suitable tables.
  private func settings(for plan: AdoptionPlan) throws -> MirrorConfiguration {
    TableAdoption(configuration).configuration(for: plan)
  }

  private func tables() async throws -> (MirrorPreview, AdoptionPlan) {
    let (configuration, isKnown) = (configuration, folder.exists)
    return try await PostgresPool.once(configuration.database) { pool in
      try await pool.run { connection in
        let asked = TableAdoption(configuration)
        let survey = try asked.survey(connection)
        var preview = MirrorPreview(
          name: configuration.name, space: configuration.space, capture: configuration.capture,
          role: try connection.role())
        preview.faults = survey.faults.map(\.description)
        if configuration.group == nil {
          preview.faults +=
            try MirrorTables(connection: connection, configuration: configuration)
            .nameFault(again: isKnown).map { [$0.description] } ?? []
        }
        for table in survey.plan.tables {
          guard let found = survey.found.first(where: { Name($0.name) == table.name }) else {
            continue
          }
          try preview.add(
            table, found, survey.plan, asked.configuration(for: survey.plan), connection)
        }
        return (preview, survey.plan)
      }
    }
  }

  // MARK: The space

  private func addSpace(to preview: inout MirrorPreview, _ plan: AdoptionPlan) async throws {
    let reader = try SpaceReader(configuration.server, space: preview.space, token: token)
    let info = try await reader.space()
    let renamed = try folder.renamed(of: try settings(for: plan))
    let schema = info == nil ? SpaceSchema.empty : renamed.applied(to: try await reader.schema())
    preview.spaceExists = info != nil
    for place in preview.tables.indices {
      guard let table = plan.tables.first(where: { $0.name == preview.tables[place].name }) else {
        continue
      }
      preview.tables[place].definition = plan.definition(of: table, in: schema)
    }
    let disagreements = plan.disagreements(with: schema)
    preview.faults += disagreements.map(\.description)
    guard let info else { return }
    if info.role == .reader {
      preview.faults.append(
        "the token has the role reader in space \(preview.space): a mirror writes; give one of the "
          + "role admin")
      return
    }
    guard disagreements.isEmpty, let added = try plan.added(to: schema) else { return }
    guard info.role == .admin else {
      let missing = plan.tables.filter { plan.definition(of: $0, in: schema) == .missing }
      preview.faults.append(
        "space \(preview.space) lacks the definitions of "
          + missing.map(\.name.text).joined(separator: ", ")
          + ", and the token has the role \(info.role.rawValue); give one of the role admin")
      return
    }
    if let obstacle = try await reader.obstacle(to: added) {
      preview.faults.append("space \(preview.space) refuses the definitions: \(obstacle)")
    }
  }

  // MARK: Adding

  /// Returns the effects of ``Mirror/add(_:in:token:)``.
  package func addition() async throws -> MirrorPreview {
    let reader = try SpaceReader(configuration.server, space: configuration.space, token: token)
    let info = try await reader.space()
    let schema = info == nil ? SpaceSchema.empty : try await reader.schema()
    let (configuration, isKnown) = (configuration, folder.exists)
    var preview = try await PostgresPool.once(configuration.database) { pool in
      try await pool.run { connection in
        var preview = MirrorPreview(
          name: configuration.name, space: configuration.space, capture: configuration.capture,
          role: try connection.role())
        let rights = try MirrorRights(configuration.schema, connection)
        preview.faults = rights.faults(makesTables: true).map(\.description)
        preview.faults += faults { try configuration.checkCapture(connection) }
        let tables = MirrorTables(connection: connection, configuration: configuration)
        preview.faults += try tables.nameFault(again: isKnown).map { [$0.description] } ?? []
        do {
          let plan = try configuration.plan(schema)
          try preview.add(plan, tables, isKnown: isKnown)
          if plan.tables.isEmpty { preview.faults.append(plan.emptyFault(of: configuration.space)) }
        } catch let fault as MirrorFault {
          preview.faults.append(fault.description)
        }
        return preview
      }
    }
    preview.spaceExists = info != nil
    if info?.role == .reader {
      preview.faults.append("the token has the role reader: a mirror writes; give one of writer")
    }
    preview.faults += faults { try folder.checkIsFree(for: configuration) }
    return preview
  }

  // MARK: A present mirror

  /// Returns the changes of both sides since a mirror was made, and the reasons for a stop.
  package static func present(_ folder: MirrorFolder) async throws -> MirrorPreview {
    let configuration = try folder.configuration()
    let shapes = try await otherShapes(of: configuration)
    let asked = configuration.follows ? configuration.asked(with: shapes) : configuration
    let previewer = MirrorPreviewer(asked, in: folder, token: try folder.token())
    return try await previewer.present(configuration, shapes)
  }

  private static func otherShapes(
    of settings: MirrorConfiguration
  ) async throws -> [MirrorLedger.OtherShape] {
    guard settings.follows else { return [] }
    return try await PostgresPool.once(settings.database) { pool in
      try await pool.run { try MirrorLedger(settings.name, $0)?.otherShapes($0) ?? [] }
    }
  }

  /// - Parameters:
  ///   - settings: those of the mirror.
  ///   - shapes: the changed tables.
  private func present(
    _ settings: MirrorConfiguration, _ shapes: [MirrorLedger.OtherShape]
  ) async throws -> MirrorPreview {
    let reader = try SpaceReader(configuration.server, space: configuration.space, token: token)
    let info = try await reader.space()
    guard info != nil else {
      throw MirrorFault(description: "the server has no space \(configuration.space) any more")
    }
    let schema = settings.renamed.applied(to: try await reader.schema())
    let configuration = configuration
    let isOwn = configuration.adoptions.isEmpty
    var (preview, plan) =
      isOwn
      ? (
        try await PostgresPool.once(configuration.database) { pool in
          try await pool.run {
            MirrorPreview(
              name: configuration.name, space: configuration.space, capture: configuration.capture,
              role: try $0.role())
          }
        }, nil
      ) : try await tables()
    let followed = try changes(shapes, settings, plan, schema)
    try await PostgresPool.once(configuration.database) { pool in
      preview = try await pool.run { [preview] connection in
        var preview = preview
        guard let ledger = try MirrorLedger(configuration.name, connection) else {
          throw MirrorFault.missing(configuration.name)
        }
        preview.stops = try ledger.presentStops(connection)
        guard isOwn else { return preview }
        let tables = MirrorTables(connection: connection, configuration: configuration)
        do {
          try preview.add(try configuration.plan(schema), tables, ledger.number, isKnown: true)
        } catch let fault as MirrorFault {
          preview.faults.append(fault.description)
        }
        return preview
      }
    }
    preview.spaceExists = true
    guard let plan else { return preview }
    for place in preview.tables.indices {
      guard let table = plan.tables.first(where: { $0.name == preview.tables[place].name }) else {
        continue
      }
      // The rows have travelled.
      preview.tables[place].rows = nil
      preview.tables[place].definition = plan.definition(of: table, in: schema)
    }
    preview.faults += plan.disagreements(with: schema, except: Set(followed.keys))
      .map(\.description)
    preview.show(followed)
    preview.show(plan, since: settings)
    return preview
  }

  /// Returns the changes of a present mirror's tables.
  private func changes(
    _ shapes: [MirrorLedger.OtherShape], _ settings: MirrorConfiguration, _ plan: AdoptionPlan?,
    _ schema: SpaceSchema
  ) throws -> [Name: TableChange] {
    guard let plan else { return [:] }
    let former = try settings.plan(schema)
    var changes: [Name: TableChange] = [:]
    for shape in shapes {
      changes[shape.table] = TableChange(shape, former, plan, schema, settings.renamed)
    }
    return changes
  }
}

extension MirrorPreview {
  /// Shows the changes that a present mirror follows, and those at which it stops.
  fileprivate mutating func show(_ changes: [Name: TableChange]) {
    for (name, change) in changes.sorted(by: { $0.key < $1.key }) {
      switch change {
      case .lost: continue
      case .stopped(let reason):
        if !stops.contains(where: { $0.table == name.text }) {
          stops.append(MirrorStop(table: name.text, reason: reason))
        }
      case .followed(let table):
        stops.removeAll { $0.table == name.text }
        guard let place = tables.firstIndex(where: { $0.name == name }) else { continue }
        tables[place].definition = table.shown.isEmpty ? .equal : .followed(table.shown)
      }
    }
  }
}

extension MirrorPreview {
  /// Shows the changed rights that a present mirror follows.
  fileprivate mutating func show(_ plan: AdoptionPlan, since settings: MirrorConfiguration) {
    for place in tables.indices {
      let name = tables[place].name
      guard let present = plan.tables.first(where: { $0.name == name })?.adoption.limits,
        let former = settings.adoptions[name.text]?.limits, former != present
      else { continue }
      let changes = present.changes(since: former)
      switch tables[place].definition {
      case .followed(let others): tables[place].definition = .followed("\(others); \(changes)")
      case .equal: tables[place].definition = .followed(changes)
      default: break
      }
    }
  }
}

/// Returns the fault of a step as a list.
private func faults(_ body: () throws -> Void) -> [String] {
  do {
    try body()
    return []
  } catch {
    return ["\(error)"]
  }
}
