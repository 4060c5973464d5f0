import Ferry

/// The lists and tasks of this device, in a replica.
///
/// Private and shared lists are in the same tables. A row's column `space` has the space that it belongs to, so
/// that one UPDATE shares a list.
final class TaskStore: Sendable {
  private let replica: Replica
  /// The user's own space; empty before a server is named.
  let home: String

  /// A value that lost against another device's, with the value that is there now.
  struct Disagreement: Sendable {
    var kept: KeptConflict
    var now: PresentSide
    /// The replica of its space.
    fileprivate var replica: Replica
  }

  /// Opens the file. Without a server the app works as well, and a later start may name one.
  init(_ path: String, server: (url: String, space: String)?, token: String? = nil) async throws {
    replica =
      if let server {
        try await Replica.open(
          path, server: server.url, space: server.space,
          token: token.map { .fixed($0) } ?? .stored)
      } else {
        try await Replica.open(path)
      }
    try await replica.write { database in
      try TaskList.table.create(in: database)
      try Todo.table.create(in: database)
    }
    home = try await replica.status().server?.space.value ?? ""
    guard !home.isEmpty else { return }
    // Rows from before the first start with a server belong to the user's own space.
    try await replica.write { [home] database in
      _ = try TaskList.all.where(Field("space") == "").update(["space": home], in: database)
      _ = try Todo.all.where(Field("space") == "").update(["space": home], in: database)
    }
    try await replica.track("lists", "tasks", spaceColumn: "space")
  }

  // MARK: Sharing

  /// Moves a list to a space that the user creates. Other people take part by invitation.
  func share(_ list: TaskList, as space: String) async throws {
    try await replica.spaces.create(space, title: list.name)
    try await replica.write { database in
      let tasks = Todo.all.where(Field("list") == list.id)
      _ = try TaskList.all.where(Field("id") == list.id).update(["space": space], in: database)
      _ = try tasks.update(["space": space], in: database)
    }
  }

  /// Returns a link that makes one other user a member of a list's space.
  func invite(to list: TaskList) async throws -> InvitationLink {
    try await replica.spaces.replica(of: list.space).members
      .invite(as: .writer, isOnce: true).link
  }

  /// Accepts an invitation. The next sync brings the lists of the space.
  func accept(_ invitation: String) async throws {
    try await replica.spaces.accept(invitation)
  }

  /// Takes part with this device in a space of which the user is a member already.
  func join(_ space: String) async throws { try await replica.spaces.join(space) }

  func members(of list: TaskList) async throws -> [Member] {
    try await replica.spaces.replica(of: list.space).members.all()
  }

  /// Ends the user's membership in a list's space. The lists of the space are deleted on this device, and stay
  /// on those of the others.
  func leave(_ list: TaskList) async throws {
    try await replica.spaces.leave(list.space, endingMembership: true)
  }

  /// The replicas of all spaces of the file.
  private var replicas: [Replica] {
    get async throws { [replica] + (try await replica.spaces.replicas()) }
  }

  // MARK: Lists and tasks

  func sections() async throws -> [Section] { try await replica.read(Section.all) }

  /// Returns the lists now, and again after each change of them, by this device or another one.
  func liveSections() -> AsyncThrowingStream<[Section], any Error> {
    replica.observe(Section.all)
  }

  func addList(_ name: String) async throws {
    try await replica.write { [home] in
      _ = try TaskList(space: home, name: name).insert(in: $0)
    }
  }

  func addTask(_ title: String, to list: TaskList) async throws {
    try await replica.write {
      _ = try Todo(space: list.space, list: list.id, title: title).insert(in: $0)
    }
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

  /// Exchanges the changes of all spaces.
  func sync() async throws -> SyncReport { try await replica.sync() }

  /// Stays in step with the server until the task is cancelled or the store is closed.
  func watch() async throws { try await replica.watch() }

  func pendingCount() async throws -> Int {
    var count = 0
    for replica in try await replicas { count += try await replica.status().pending }
    return count
  }

  // MARK: Conflicts

  /// Returns the conflicts whose losing value nobody has chosen or dismissed yet.
  func disagreements() async throws -> [Disagreement] {
    var found: [Disagreement] = []
    for replica in try await replicas {
      let kept = try await replica.conflicts().filter { $0.resolvedAt == nil }
      let sides = try await replica.presentSides(of: kept)
      found += zip(kept, sides).map { Disagreement(kept: $0, now: $1, replica: replica) }
    }
    return found.filter {
      $0.kept.conflict.column == nil || $0.now != .value($0.kept.conflict.lost)
    }
  }

  /// Writes the losing value again, or confirms the present one. A deleted task comes back whole.
  func settle(_ conflict: Disagreement, takingLost isLost: Bool) async throws {
    let isLocal = isLost == conflict.kept.isLosersOwn
    try await conflict.replica.resolve(
      conflict.kept.number, isLocal ? .keepLocal : .keepRemote)
  }

  func close() async { await replica.close() }
}
