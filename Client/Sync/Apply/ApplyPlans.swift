import FerryProtocol

/// The plans to apply changes to the tables of a file, made once for each state of the schema.
final class ApplyPlans {
  private var plans: [Name: ApplyPlan] = [:]
  private var rules: ParentRules?

  /// Forgets all plans: the schema or the space's rules have changed.
  func removeAll() { (plans, rules) = ([:], nil) }

  /// Returns the rules of the foreign keys of all tables.
  func parentRules(in tables: LocalTables) throws -> ParentRules {
    if let rules { return rules }
    let read = try tables.foreignKeys.rules()
    rules = read
    return read
  }

  /// Returns the plan for a table; `nil` if the file does not have the table by this name.
  func plan(for table: Name, in tables: LocalTables) throws -> ApplyPlan? {
    if let plan = plans[table] { return plan }
    let plan = try makePlan(for: table, in: tables)
    plans[table] = plan
    return plan
  }

  private func makePlan(for table: Name, in tables: LocalTables) throws -> ApplyPlan? {
    let connection = tables.connection
    if table == MissionRecord.table {
      return ApplyPlan(
        table: .missions(in: connection.namespace), rules: .standard, connection: connection)
    }
    guard try tables.tracked.contains(table), let schema = tables.present(table) else { return nil }
    let parentRules = try parentRules(in: tables)
    return ApplyPlan(
      table: schema, rules: try tables.rules(for: schema), connection: connection,
      hasDeleteTrigger: try UserTriggers(connection: connection).areFired(byDeletesIn: schema),
      parentRules: parentRules, isShared: try tables.spellings.isShared(table),
      unshared: try tables.spellings.unsharedColumns(of: table))
  }
}
