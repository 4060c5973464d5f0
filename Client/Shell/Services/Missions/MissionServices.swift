import FerryMissions
import FerryProtocol
import FerrySyncClient

/// The services `missions.…`: missions of the space, and their files as addresses for pages.
///
/// ```swift
/// let services = MissionServices(try await replica.missionManager())
/// ```
public struct MissionServices: Sendable {
  private let manager: MissionManager
  private let replica: Replica?

  /// Creates the services over a manager.
  ///
  /// - Parameter replica: its syncs add new missions; a live list shows them then.
  public init(_ manager: MissionManager, replica: Replica? = nil) {
    self.manager = manager
    self.replica = replica
  }

  private static let named = ValueSchema.object([.required("mission", .text(max: 128))])
  private static let listed = ValueSchema.list(of: .map(of: .any, max: 32), max: 10_000)

  /// All of them.
  public var all: [Service] {
    [list, files] + [
      change("download", "downloads missions") { try await $0.download([$1]) },
      change("pause", "pauses downloads") { try await $0.pause($1) },
      change("resume", "continues downloads") { try await $0.resume($1) },
      change("cancel", "cancels downloads") { try await $0.cancel($1) },
      change("remove", "removes missions from the device") { try await $0.remove($1) },
    ]
  }

  /// `missions.list`: all missions with their progress.
  public var list: Service {
    Service(
      "missions.list", permission: "reads the list of missions", argument: .nothing,
      result: Self.listed
    ) { [manager, replica] _ in
      let events = Feeds.signals(manager.events()) { _ in }
      let start = Feeds.stream { yield in yield(()) }
      var signals = Feeds.merged([start, events])
      if let replica {
        signals = Feeds.merged([signals, Feeds.signals(replica.activity()) { _ in }])
      }
      return Feeds.reread(on: signals) { try await Self.missions(manager) }
    } handler: { [manager] _ in
      try await Self.missions(manager)
    }
  }

  /// `missions.files`: the files of a downloaded mission, each with an address for elements of the
  /// page. A later call returns the same addresses. The bytes are checked while they are served.
  public var files: Service {
    Service(
      "missions.files", permission: "reads the files of missions", argument: Self.named,
      result: Self.listed
    ) { call in
      let id = try Self.mission(call)
      let items = try await manager.items(id)
      guard items.count <= PageFiles.linksMax else {
        throw ServiceError(
          "too_large",
          "the mission has \(items.count) files, and a page gets at most \(PageFiles.linksMax)")
      }
      return .list(
        items.map { item in
          [
            "path": .text(item.path), "type": .text(item.mediaType),
            "size": .integer(item.content.size),
            "file": .text(address(of: item, in: id, call.files)),
          ]
        })
    }
  }

  /// Returns the address of a mission's file; the file is opened when the page reads it.
  private func address(
    of item: MissionFileRow, in id: MissionID, _ files: PageFiles
  ) -> String {
    let key = Array("\(id.value)/\(item.path)/".utf8) + item.content.hash.bytes
    let served = ServedContent(size: item.content.size, mediaType: item.mediaType) {
      [manager, open = files.open] offset, count in
      try await open.read(key, from: offset, count: count) {
        let content = try await manager.content(of: item.path, in: id)
        guard content.hash == item.content.hash else {
          throw ServiceError("not_found", "another version of mission \(id) is in use")
        }
        return { try await content.read(from: $0, count: $1) }
      }
    }
    return files.add(served, key: key)
  }

  private func change(
    _ name: String, _ permission: String,
    _ body: @escaping @Sendable (MissionManager, MissionID) async throws -> Void
  ) -> Service {
    Service(
      ServiceName(stringLiteral: "missions.\(name)"), permission: permission, argument: Self.named,
      result: .nothing
    ) { [manager] call in
      try await body(manager, try Self.mission(call))
      return .null
    }
  }

  private static func mission(_ call: ServiceCall) throws(ServiceError) -> MissionID {
    guard let id = MissionID(call.argument["mission"]?.text ?? "") else {
      throw ServiceError("invalid_argument", "mission is no mission's name")
    }
    return id
  }

  private static func missions(_ manager: MissionManager) async throws -> ServiceValue {
    .list(
      try await manager.list().map { status in
        [
          "mission": .text(status.id.value), "title": .text(status.title),
          "summary": .text(status.summary), "version": .integer(status.version),
          "state": ServiceValue(orNull: status.state?.rawValue),
          "reason": ServiceValue(orNull: status.reason?.description),
          "items": .integer(status.items), "itemsDone": .integer(status.itemsDone),
          "bytesDone": .integer(status.bytesDone), "bytesTotal": .integer(status.bytesTotal),
          "isDownloaded": .bool(status.isDownloaded), "hasUpdate": .bool(status.hasUpdate),
        ]
      })
  }
}

extension MissionError: ServiceErrorConvertible {
  package var serviceError: ServiceError {
    switch kind {
    case .notFound: ServiceError("not_found", description)
    case .offline: ServiceError("offline", description)
    case .diskFull: ServiceError("disk_full", description)
    case .busy, .waiting: ServiceError("busy", description)
    case .cancelled: .cancelled
    default: ServiceError("mission_failed", description)
    }
  }
}
