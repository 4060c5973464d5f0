import FerryProtocol

/// The plans to apply changes to the tables of a file, made once for each state of the schema.
final class ApplyPlans {
  private var plans: [Name: ApplyPlan] = [:]
  private var rules: ParentRules?

  /// Forgets all plans: the schema or the space's rules have changed.
  func removeAll() { (plans, rules) = ([:], nil) }

  /// Returns the rules of the foreign keys of all tables.
  func parentRules(in file: ReplicaFile) throws -> ParentRules {
    if let rules { return rules }
    let read = try file.readParentRules()
    rules = read
    return read
  }

  /// Returns the plan for a table; `nil` if the file does not have the table by this name.
  func plan(for table: Name, in file: ReplicaFile) throws -> ApplyPlan? {
    if let plan = plans[table] { return plan }
    let plan = try makePlan(for: table, in: file)
    plans[table] = plan
    return plan
  }

  private func makePlan(for table: Name, in file: ReplicaFile) throws -> ApplyPlan? {
    let connection = file.connection
    if table == MissionRecord.table {
      return ApplyPlan(
        table: .missions(in: connection.namespace), rules: .standard, connection: connection)
    }
    guard
      try file.tracked.contains(table),
      let schema = try? file.schema(of: table), schema.name == table
    else { return nil }
    return ApplyPlan(
      table: schema, rules: try file.schemas.current().rules(for: table), connection: connection,
      followers: try KeyFollower.read(of: schema, from: connection),
      goesWithParents: try file.goesWithParents(schema.local),
      hasDeleteTrigger: try file.hasDeleteTrigger(schema), parentRules: try parentRules(in: file),
      isShared: try file.spellings.isShared(table),
      unshared: try file.spellings.unsharedColumns(of: table))
  }
}
