import Ferry

/// The lists and tasks of this device, in a replica.
final class TaskStore: Sendable {
  private let replica: Replica

  /// A value that lost against another device's, with the value that is there now.
  struct Disagreement: Sendable {
    var kept: KeptConflict
    var now: PresentSide
  }

  /// Opens the file. Without a server the app works as well, and a later start may name one.
  init(_ path: String, server: (url: String, space: String)?) async throws {
    replica =
      if let server {
        try await Replica.open(path, server: server.url, space: server.space)
      } else {
        try await Replica.open(path)
      }
    try await replica.write { database in
      try TaskList.table.create(in: database)
      try Todo.table.create(in: database)
    }
    try await replica.track("lists", "tasks")
  }

  func sections() async throws -> [Section] { try await replica.read(Section.all) }

  /// Returns the lists now, and again after each change of them, by this device or another one.
  func liveSections() -> AsyncThrowingStream<[Section], any Error> {
    replica.observe(Section.all)
  }

  func addList(_ name: String) async throws {
    try await replica.write { _ = try TaskList(name: name).insert(in: $0) }
  }

  func addTask(_ title: String, to list: TaskList) async throws {
    try await replica.write { _ = try Todo(list: list.id, title: title).insert(in: $0) }
  }

  /// Changes one column only, so that another device's change of the other one is no conflict.
  func setTitle(_ title: String, of task: Todo) async throws {
    try await replica.write { database in
      _ = try Todo.all.where(Field("id") == task.id).update(["title": title], in: database)
    }
  }

  func toggle(_ task: Todo) async throws {
    try await replica.write { database in
      _ = try Todo.all.where(Field("id") == task.id).update(["done": !task.done], in: database)
    }
  }

  func sync() async throws -> SyncReport { try await replica.sync() }

  /// Stays in step with the server until the task is cancelled or the store is closed.
  func watch() async throws { try await replica.watch() }

  func pendingCount() async throws -> Int { try await replica.status().pending }

  // MARK: Conflicts

  /// Returns the conflicts whose losing value nobody has chosen or dismissed yet.
  func disagreements() async throws -> [Disagreement] {
    let kept = try await replica.conflicts().filter { $0.resolvedAt == nil }
    let sides = try await replica.presentSides(of: kept)
    return zip(kept, sides).map { Disagreement(kept: $0, now: $1) }
      .filter { $0.kept.conflict.column == nil || $0.now != .value($0.kept.conflict.lost) }
  }

  /// Writes the losing value again, or confirms the present one.
  func settle(_ conflict: Disagreement, takingLost isLost: Bool) async throws {
    let isLocal = isLost == conflict.kept.isLosersOwn
    try await replica.resolve(conflict.kept.number, isLocal ? .keepLocal : .keepRemote)
  }

  func close() async { await replica.close() }
}
