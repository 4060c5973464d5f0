import FerryConformance
import FerryProtocol
import FerrySQLite
import FerrySyncClient

// Changes of tables by the device's user and other programs, and writes to another device's file.
extension DeviceProcess {
  /// Changes a table in a way invisible to the triggers.
  func migrate(_ random: inout SeededRandom) {
    guard let replica else { return }
    let plan = Migration.Plan(&random, shares: device.ledgers.count > 1)
    start { [self] in
      do {
        try await carryOut(plan, replica)
        guard isAlive else { return }
        setting.trace.record(.migrated, device.name, "\(plan.table) is \(plan.kind.rawValue)")
      } catch {
        fail("migrate", error)
        if plan.kind == .untracked { await trackAgain(Name(plan.table), replica) }
      }
    }
  }

  /// Attaches another device's file and writes to a table tracked there. The other device's
  /// triggers would record the write here, so it is rejected.
  func write(attaching other: SimulatedDevice, _ random: inout SeededRandom) {
    guard let replica else { return }
    let id = Workload.fresh("n-", &random)
    start { [self] in
      do {
        try await replica.write { [setting] database in
          try database.execute("ATTACH \(quoted(literal: other.path)) AS other")
          let insert =
            "INSERT INTO other.notes(id, title) VALUES (\(quoted(literal: id)), 'attached')"
          if setting.planted == .attachedRecorded {
            // No guard checks statements of the connection itself.
            try database.connection.execute(insert)
          } else {
            try database.execute(insert)
          }
        }
        if isAlive { setting.trace.record(.attached, device.name, "wrote to \(other.name)") }
      } catch {
        if isAlive { setting.trace.record(.attached, device.name, "\(other.name): \(error)") }
      }
      do {
        // The failed transaction leaves the file attached.
        try await replica.write { database in
          let list = "SELECT name FROM pragma_database_list WHERE name = 'other'"
          if try !database.query(list).isEmpty { try database.execute("DETACH other") }
        }
      } catch  where isAlive {
        // If the other device died, the disk has killed this process's handle of its file too. Each
        // further transaction here would fail.
        device.crash(losingPower: false, restartAfter: 1_000_000)
      } catch {
        // The process has died meanwhile.
      }
    }
  }

  private func carryOut(_ plan: Migration.Plan, _ replica: Replica) async throws {
    let table = Name(plan.table)
    if plan.kind == .untracked { try await replica.untrack(table) }
    if plan.kind == .rebuiltElsewhere {
      let other = try SQLiteConnection(path: device.path, fileSystem: setting.disk.fileSystem)
      let find = "SELECT sql FROM sqlite_schema WHERE name = \(quoted(literal: plan.table))"
      try other.transaction {
        let sql = try other.prepare(find).first { $0.text(0) } ?? ""
        for statement in plan.statements(madeBy: sql) { try other.execute(statement) }
      }
    } else {
      try await replica.write { database in
        let found = try database.query(
          "SELECT sql FROM sqlite_schema WHERE name = \(quoted(literal: plan.table))")
        guard case .text(let sql)? = found.first?.values.first else { return }
        for statement in plan.statements(madeBy: sql) { try database.execute(statement) }
      }
    }
    if plan.kind == .untracked { try await track(table, replica) }
  }

  /// Records a table again after a failed migration, as soon as the disk permits it.
  private func trackAgain(_ table: Name, _ replica: Replica) async {
    while isAlive {
      do { return try await track(table, replica) } catch { fail("track", error) }
      try? await setting.scheduler.sleep(.milliseconds(500))
    }
  }

  private func track(_ table: Name, _ replica: Replica) async throws {
    if Workload.shared.tables.contains(table) {
      try await whole?.track(table, spaceColumn: Workload.shared.column)
    } else {
      try await replica.track(table)
    }
  }

  /// Makes the shared tables in a file of one space, and renames a column of theirs.
  func renameShared(in first: Replica) async throws {
    let renaming = Workload.sharedRename
    let columns = "SELECT name FROM pragma_table_info('\(renaming.table)')"
    try await first.write { database in
      guard try database.query(columns).isEmpty else { return }
      for statement in Workload.sharedSchema { try database.execute(statement) }
    }
    try await first.track(Workload.shared.tables, spaceColumn: Workload.shared.column)
    try await first.write { database in
      guard try database.query(columns + " WHERE name = '\(renaming.to)'").isEmpty else { return }
      try database.renameColumn(renaming.from, of: renaming.table, to: renaming.to)
    }
  }
}
