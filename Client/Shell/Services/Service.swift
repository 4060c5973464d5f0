import FerryPlatform
import FerryProtocol

/// A native function that pages of a bundle may call, as a value.
///
/// ```swift
/// let list = Service(
///   "tasks.list", permission: "reads the tasks",
///   argument: .object([.required("list", .text(max: 64))]), result: .any
/// ) { call in
///   try ServiceValue(encoding: await store.tasks(in: call.argument["list"]?.text ?? ""))
/// }
/// ```
public struct Service: Sendable {
  /// Answers one call.
  public typealias Handler = @Sendable (ServiceCall) async throws -> ServiceValue
  /// Returns the results of a live query: the present one, and each later one.
  public typealias Feed =
    @Sendable (ServiceCall) async throws -> AsyncThrowingStream<
      ServiceValue, any Error
    >

  /// The group and the name, such as `tasks.list`.
  public let name: ServiceName
  /// The version of the service's form. With another first number it is another service; otherwise
  /// a later version also serves pages that declare an earlier one.
  public let version: BundleVersion
  /// The permission, in words to complete "The page ", such as `reads the tasks`.
  public let permission: String
  /// The form of arguments.
  public let argument: ValueSchema
  /// The form of results.
  public let result: ValueSchema
  let handler: Handler?
  let feed: Feed?

  /// Creates a service for calls.
  ///
  /// - Parameter feed: Answers `ferry.watch` as well.
  public init(
    _ name: ServiceName, version: BundleVersion = .first, permission: String, argument: ValueSchema,
    result: ValueSchema, feed: Feed? = nil, handler: @escaping Handler
  ) {
    self.init(name, version, permission, argument, result, handler, feed)
  }

  /// Creates a service that only `ferry.watch` may use.
  public init(
    watching name: ServiceName, version: BundleVersion = .first, permission: String,
    argument: ValueSchema,
    result: ValueSchema, feed: @escaping Feed
  ) {
    self.init(name, version, permission, argument, result, nil, feed)
  }

  private init(
    _ name: ServiceName, _ version: BundleVersion, _ permission: String, _ argument: ValueSchema,
    _ result: ValueSchema, _ handler: Handler?, _ feed: Feed?
  ) {
    (self.name, self.version, self.permission) = (name, version, permission)
    (self.argument, self.result, self.handler, self.feed) = (argument, result, handler, feed)
  }
}

/// One call of a service.
public struct ServiceCall: Sendable {
  /// The argument, in the form of the service's schema.
  public let argument: ServiceValue
  /// The bundle of the calling page.
  public let bundle: PageVersion
  /// Large data for the calling page.
  public let files: PageFiles

  package init(argument: ServiceValue, bundle: PageVersion, files: PageFiles) {
    (self.argument, self.bundle, self.files) = (argument, bundle, files)
  }
}

/// A service's name: a group and a name, such as `tasks.list`. Each of at most 32 lower-case
/// letters, digits and hyphens.
public struct ServiceName: Sendable, Hashable, Comparable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  /// The part before the point.
  public let group: String
  /// The part after it.
  public let member: String

  /// Reads a name; `nil` if it has another form.
  public init?(_ text: String) {
    let parts = text.parts(at: ".")
    guard parts.count == 2, parts.allSatisfy(ServiceName.isPart) else { return nil }
    (group, member) = (String(parts[0]), String(parts[1]))
  }

  /// Creates the name of a service in a program. The program ends if it is none.
  public init(stringLiteral value: String) {
    guard let name = ServiceName(value) else {
      preconditionFailure("“\(value)” is no name of a service")
    }
    self = name
  }

  public var description: String { "\(group).\(member)" }

  public static func < (left: Self, right: Self) -> Bool {
    (left.group, left.member) < (right.group, right.member)
  }

  static func isPart(_ text: Substring) -> Bool {
    1...32 ~= text.utf8.count
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}

/// Services declared by a bundle or granted by an app: `tasks.list`, or `tasks` for all of a group.
///
/// `tasks.list@2` is version 2 of the service, or a later one such as 2.1. Without a version, it is
/// version 1.
public struct ServicePattern: Sendable, Hashable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  /// The group.
  public let group: String
  /// `nil` for all of the group.
  private let member: String?
  /// The oldest sufficient version; see ``BundleVersion/serves(_:)``.
  let version: BundleVersion

  /// Reads a pattern; `nil` if it has another form.
  public init?(_ text: String) {
    let parts = text.parts(at: "@")
    guard parts.count <= 2 else { return nil }
    var version = BundleVersion.first
    if parts.count == 2 {
      guard let named = BundleVersion(String(parts[1])) else { return nil }
      version = named
    }
    self.init(String(parts[0]), version: version)
  }

  /// Creates a pattern of a service or a group; `nil` if the name or the version has another form.
  public init?(_ name: String, version: BundleVersion) {
    guard version >= .first else { return nil }
    self.version = version
    if ServiceName.isPart(name[...]) {
      (group, member) = (name, nil)
    } else if let name = ServiceName(name) {
      (group, member) = (name.group, name.member)
    } else {
      return nil
    }
  }

  /// Creates a pattern in a program. The program ends if it is none.
  public init(stringLiteral value: String) {
    guard let pattern = ServicePattern(value) else {
      preconditionFailure("“\(value)” names no services")
    }
    self = pattern
  }

  public var description: String {
    group + (member.map { ".\($0)" } ?? "") + (version == .first ? "" : "@\(version)")
  }

  /// Returns true if a service is one of them.
  public func matches(_ name: ServiceName, version: BundleVersion) -> Bool {
    names(name) && version.serves(self.version)
  }

  /// Returns true if a service is one of them in some version.
  func names(_ name: ServiceName) -> Bool {
    group == name.group && (member == nil || member == name.member)
  }

  /// Returns true if all services of another pattern are among these.
  public func covers(_ other: ServicePattern) -> Bool {
    group == other.group && other.version.serves(version)
      && (member == nil || member == other.member)
  }
}
