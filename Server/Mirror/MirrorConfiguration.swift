import FerryPlatform
import FerryProtocol
import Foundation

/// The settings of a mirror, in the file `mirror.json` of the mirror's folder.
package struct MirrorConfiguration: Codable, Sendable, Equatable {
  /// 1 to 63 characters of `a-z 0-9 _ -`.
  package var name: String
  /// The address of the space's server.
  package var server: String
  package var space: String
  /// The database with the mirrored tables.
  package var database: String
  /// The schema with the mirrored tables.
  package var schema: String
  /// The mirrored tables; empty for all defined by the space.
  package var tables: [String] = []
  /// PostgreSQL types by `table.column`.
  package var types: [String: String] = [:]
  /// The adopted tables of a company, by name; empty if the mirror made the tables.
  package var adoptions: [String: MirrorAdoption] = [:]
  /// The way in which PostgreSQL records the writes of programs.
  package var capture = MirrorCapture.triggers
  /// The reason against the log, if the mirror has chosen triggers itself.
  package var captureReason: String?
  /// The last schema published by the mirror; the replica may not have pulled it yet.
  var published: PublishedSchema?
  /// The columns that the company has renamed since the adoption.
  var renamed = RenamedColumns()
  /// The group of the mirror; `nil` for a mirror made by a user.
  package var group: String?

  package init(name: String, server: String, space: String, database: String, schema: String) {
    (self.name, self.server, self.space) = (name, server, space)
    (self.database, self.schema) = (database, schema)
  }

  /// Returns `true` if a text can be a mirror's name, and so a folder's.
  package static func isName(_ text: String) -> Bool {
    text.wholeMatch(of: /[a-z0-9][a-z0-9_-]{0,62}/) != nil
  }

  /// Returns the plan of a schema.
  ///
  /// - Parameter here: the tables of the replica; `nil` for all.
  package func plan(
    _ space: SpaceSchema, here: Set<Name>? = nil
  ) throws(MirrorFault) -> MirrorPlan {
    var annotations: [String: MirrorType] = [:]
    for (column, name) in types {
      guard let type = MirrorType(annotation: name) else {
        throw MirrorFault(description: "“\(name)” is no type of a mirror: see --type")
      }
      annotations[column] = type
    }
    var space = renamed.applied(to: newest(space))
    // One that the replica cannot create stops no other one.
    if let here { space.tables = space.tables.filter { here.contains($0.key) } }
    let plan = try MirrorPlan(
      space, chosen: tables.map { Name($0) }, types: annotations,
      adopted: Set(adoptions.keys.map { Name($0) }))
    return plan.adopting(adoptions)
  }
}

/// The folder of a mirror: the settings and the replica.
package struct MirrorFolder: Sendable {
  package let path: String

  /// - Parameter root: the folder of all mirrors.
  package init(_ name: String, in root: String) { path = root + "/" + name }

  var replica: String { path + "/replica.db" }
  private var settings: URL { URL(filePath: path + "/mirror.json") }

  package var exists: Bool { FileManager.default.fileExists(atPath: settings.path) }

  /// Creates the folder for this user alone: the settings may have a password.
  func make() throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    // The folder may have been there.
    guard chmod(path, 0o700) == 0 else { throw Self.fault(path, errno) }
  }

  private static func fault(_ path: String, _ code: Int32) -> MirrorFault {
    MirrorFault(description: "\(path): \(String(cString: strerror(code)))")
  }

  func save(_ configuration: MirrorConfiguration) throws {
    try save(configuration, in: settings)
  }

  package func configuration() throws -> MirrorConfiguration {
    try JSONDecoder().decode(MirrorConfiguration.self, from: Data(contentsOf: settings))
  }

  func save(_ settings: some Encodable, in file: URL) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let draft = file.path + ".new"
    unlink(draft)
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.fault(draft, errno) }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try handle.write(contentsOf: try encoder.encode(settings))
    try handle.synchronize()
    guard rename(draft, file.path) == 0 else { throw Self.fault(file.path, errno) }
  }

  // MARK: A group's folder

  private var groupSettings: URL { URL(filePath: path + "/group.json") }

  /// True if it is the folder of a group.
  package var isGroup: Bool { FileManager.default.fileExists(atPath: groupSettings.path) }

  func save(_ group: MirrorGroupConfiguration) throws { try save(group, in: groupSettings) }

  package func group() throws -> MirrorGroupConfiguration {
    try JSONDecoder().decode(
      MirrorGroupConfiguration.self, from: Data(contentsOf: groupSettings))
  }

  package func remove() throws { try FileManager.default.removeItem(atPath: path) }

  /// - Throws: ``MirrorFault`` if another process has the lock.
  func lock() throws -> MirrorLock { try MirrorLock(path + "/lock") }
}

/// The lock of the process that carries a mirror's rows. The system releases it at any end of the
/// process.
final class MirrorLock: Sendable {
  private let descriptor: Int32

  fileprivate init(_ path: String) throws {
    descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MirrorFault(description: "\(path): \(String(cString: strerror(errno)))")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      throw MirrorFault(
        description: "another process runs this mirror: end it first, or use that one")
    }
  }

  deinit {
    Platform.unlock(descriptor)
    close(descriptor)
  }
}
