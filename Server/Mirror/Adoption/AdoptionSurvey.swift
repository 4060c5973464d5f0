import FerryPostgres
import FerryProtocol

/// The tables of a company before an adoption, and all reasons of the database against it.
package struct AdoptionSurvey: Sendable, Equatable {
  /// The readable tables, in the order of the request.
  let found: [CompanyTable]
  /// The suitable tables. A missing right that is required makes no table unsuitable here.
  package let plan: AdoptionPlan
  /// The reasons against the adoption.
  package let faults: [MirrorFault]

  /// - Throws: ``MirrorFault`` with all reasons against the adoption.
  package func checked() throws(MirrorFault) -> AdoptionPlan {
    try MirrorFault.raise(faults)
    return plan
  }
}

extension TableAdoption {
  /// Reads the tables, and changes nothing.
  ///
  /// - Throws: `PostgresError`.
  package func survey(_ connection: PostgresConnection) throws -> AdoptionSurvey {
    try connection.transaction(.snapshot) { connection in
      var faults: [MirrorFault] = []
      func collecting<Value>(_ body: () throws -> Value) throws -> Value? {
        do {
          return try body()
        } catch let fault as MirrorFault {
          faults.append(fault)
          return nil
        }
      }
      _ = try collecting { try configuration.checkCapture(connection) }
      let reader = CompanyReader(connection: connection, schema: configuration.schema)
      let tables = try configuration.tables.compactMap { name in
        try collecting {
          var table = try reader.table(name, configuration.adoptions[name]?.view)
          if let view = configuration.view(of: table) {
            guard configuration.group == nil else { throw MirrorFault.viewInGroup(name) }
            try table.show(view)
          }
          return table
        }
      }
      let rights = try MirrorRights(configuration.schema, connection)
      faults += rights.faults(makesTables: false)
      var adoptions = configuration.adoptions
      for table in tables {
        // A group has no value yet.
        guard let space = adoptions[table.name]?.space, !space.value.isEmpty else { continue }
        let canonical = try collecting { try reader.canonical(space, of: table) }
        if let canonical { adoptions[table.name]?.space = canonical }
      }
      faults += AdoptionPlan(suitable: tables, adoptions).refused
      let permitted = tables.map { table in
        var table = table
        table.grantRequiredRights()
        return table
      }
      return AdoptionSurvey(
        found: tables, plan: AdoptionPlan(suitable: permitted, adoptions), faults: faults)
    }
  }
}

extension MirrorFault {
  fileprivate static func viewInGroup(_ name: String) -> MirrorFault {
    MirrorFault(
      description: "table \(name) cannot be adopted: the mirror only reads it, and each mirror of "
        + "the group would compare all rows; adopt it by a mirror of one space")
  }

  /// Throws all of some faults as one; returns if there are none.
  static func raise(_ faults: [MirrorFault]) throws(MirrorFault) {
    if faults.isEmpty { return }
    throw MirrorFault(description: faults.map(\.description).joined(separator: "; "))
  }
}
