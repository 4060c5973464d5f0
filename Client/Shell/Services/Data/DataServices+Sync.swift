import FerryPersistence
import FerryProtocol
import FerrySyncClient

extension DataServices {
  /// `data.conflicts`: lost values, and questions for the user, newest first.
  public var conflicts: Service {
    let schema = ValueSchema.object([
      .optional("openOnly", .bool), .optional("limit", .integer(1...1_000)),
    ])
    return Service(
      "data.conflicts", permission: "reads conflicts", argument: schema,
      result: .list(of: .map(of: .any, max: 32), max: 1_000)
    ) { call in
      let changes = Self.changes(of: replica, "conflicts", "device_names")
      return Feeds.reread(on: changes) { try await conflictList(call) }
    } handler: { call in
      try await conflictList(call)
    }
  }

  private func conflictList(_ call: ServiceCall) async throws -> ServiceValue {
    let limit = Int(call.argument["limit"]?.integer ?? 100)
    let openOnly = call.argument["openOnly"]?.bool ?? false
    let kept = try await replica.conflicts(limit: limit, openOnly: openOnly) { [access] table in
      (try? access.table(.text(table.text))) != nil
    }
    let present = try await replica.presentSides(of: kept)
    let names = try await replica.deviceNames()
    return .list(
      zip(kept, present).map { conflict, side in
        value(of: conflict, side, names, call.files)
      })
  }

  private func value(
    of kept: KeptConflict, _ side: PresentSide, _ names: DeviceNames, _ files: PageFiles
  ) -> ServiceValue {
    func writer(_ stamp: Stamp, isOwn: Bool) -> ServiceValue {
      [
        "device": .text("\(stamp.device)"), "name": ServiceValue(orNull: names[stamp.device]),
        "isOwn": .bool(isOwn), "time": .integer(stamp.time.milliseconds),
      ]
    }
    let conflict = kept.conflict
    return [
      "conflict": .integer(kept.number), "table": .text(kept.key.table.text),
      "record": .text(kept.key.record.text), "column": ServiceValue(orNull: conflict.column?.text),
      "lost": ServiceValue(conflict.lost, files: files),
      "present": Self.value(of: side, files), "isOpen": .bool(kept.isOpen),
      "loser": writer(conflict.loser, isOwn: kept.isLosersOwn),
      "winner": writer(conflict.winner, isOwn: kept.isWinnersOwn),
      "noticedAt": .integer(kept.noticedAt), "resolvedAt": ServiceValue(orNull: kept.resolvedAt),
    ]
  }

  private static func value(of side: PresentSide, _ files: PageFiles) -> ServiceValue {
    switch side {
    case .value(let value): ServiceValue(value, files: files)
    case .exists: ["record": "exists"]
    case .absent: ["record": "absent"]
    case .unknown: ["record": "unknown"]
    }
  }

  /// `data.resolve`: answers a conflict.
  public var resolve: Service {
    Service(
      "data.resolve", permission: "answers conflicts",
      argument: .object([
        .required("conflict", .integer(1 ... .max)),
        .optional("keep", .choice(["local", "remote"])),
        .optional("set", .map(of: .any, max: 2_000)),
      ]), result: .nothing
    ) { call in
      let number = call.argument["conflict"]?.integer ?? 0
      let keep = call.argument["keep"]?.text
      let columns = try await PageChange.columns(call.argument["set"], call.files)
      guard (keep == nil) != columns.isEmpty else {
        throw ServiceError("invalid_argument", "an answer has either “keep” or “set”")
      }
      guard let kept = try await replica.conflict(number) else {
        throw ServiceError("not_found", "there is no conflict \(number)")
      }
      _ = try access.table(.text(kept.key.table.text))
      let answer: ConflictAnswer =
        keep == nil ? .set(columns.all) : keep == "local" ? .keepLocal : .keepRemote
      try await replica.resolve(number, answer)
      return .null
    }
  }

  /// `data.status`: whether the replica is up to date, and the reasons to involve the user.
  public var status: Service {
    Service(
      "data.status", permission: "reads the state of the sync", argument: .nothing,
      result: .map(of: .any, max: 32)
    ) { _ in
      let latest = LatestActivity()
      let activity = Feeds.signals(replica.activity()) { latest.set($0) }
      let changes = Self.changes(of: replica, "operations")
      return Feeds.reread(on: Feeds.merged([activity, changes])) {
        try await statusValue(latest.activity)
      }
    } handler: { _ in
      var activity = replica.activity().makeAsyncIterator()
      return try await statusValue(await activity.next())
    }
  }

  private func statusValue(_ activity: SyncActivity?) async throws -> ServiceValue {
    let status = try await replica.status()
    let (phase, reason) = Self.words(activity?.phase ?? .idle)
    return [
      "phase": .text(phase), "reason": ServiceValue(orNull: reason),
      "needs": .list((activity?.needs ?? []).map(\.rawValue).sorted().map { .text($0) }),
      "pending": ServiceValue(status.pending), "conflicts": ServiceValue(status.conflicts),
      "questions": ServiceValue(status.questions), "quarantined": ServiceValue(status.quarantined),
      "device": .text("\(status.device)"), "deviceName": ServiceValue(orNull: status.deviceName),
      "space": ServiceValue(orNull: status.server?.space.value),
      "lastSync": ServiceValue(orNull: status.lastSync),
    ]
  }

  private static func words(_ phase: SyncActivity.Phase) -> (phase: String, reason: String?) {
    switch phase {
    case .idle: ("idle", nil)
    case .syncing: ("syncing", nil)
    case .upToDate: ("upToDate", nil)
    case .offline(let reason): ("offline", reason)
    case .failed(let reason): ("failed", reason)
    }
  }

  /// `data.sync`: one sync now.
  public var sync: Service {
    Service(
      "data.sync", permission: "syncs with the server", argument: .nothing,
      result: .object([
        .required("pushed", .anyInteger), .required("pulled", .anyInteger),
        .required("conflicts", .anyInteger), .required("left", .anyInteger),
      ])
    ) { _ in
      let report = try await replica.sync()
      return [
        "pushed": ServiceValue(report.pushed), "pulled": ServiceValue(report.pulled),
        "conflicts": ServiceValue(report.conflicts), "left": ServiceValue(report.left),
      ]
    }
  }
}

extension DataServices {
  /// Returns a stream with an element now, and after each change of some of Ferry's tables, such as
  /// `conflicts`, in any space of the file.
  fileprivate static func changes(
    of replica: Replica, _ names: String...
  ) -> AsyncThrowingStream<Void, any Error> {
    // No equal results are left out: an answer to a conflict changes no count.
    let states = replica.observe { database -> Signal in
      for name in names {
        let tables = try database.query(
          "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?",
          [.text("ferry_*\(name)")])
        for case .text(let table) in tables.map({ $0["name"] }) {
          _ = try database.query("SELECT 1 FROM \(quoted(Name(table))) LIMIT 1")
        }
      }
      return Signal()
    }
    return Feeds.signals(states) { _ in }
  }
}

/// A change of a table.
private struct Signal: Sendable {}
