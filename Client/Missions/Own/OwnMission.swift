import FerryProtocol
import Foundation

/// A mission composed by the app from models of the app. The items come from any server.
///
/// ```swift
/// let course = OwnMission(
///   "course-7", title: "Knots", payload: Course(id: 7),
///   items: [
///     .file("film.mp4", from: "https://example.org/knots.mp4", kind: .video),
///     .result("lessons.json", of: ContentRequest("https://api.example.org/courses/7/lessons")),
///   ])
/// ```
public struct OwnMission: Sendable {
  /// The name, under the rule of ``MissionID``.
  public var id: String
  public var title: String
  public var summary: String
  /// Missions with a higher priority come first.
  public var priority: Int
  public var items: [OwnItem]
  let payload: Result<[UInt8]?, MissionError>

  /// Creates a mission. ``OwnMissions/add(_:)`` checks and begins it.
  ///
  /// - Parameter payload: any value of the app, stored as JSON;
  ///   ``OwnMissions/payload(of:as:)`` returns it, also after a restart.
  public init(
    _ id: String, title: String = "", summary: String = "", priority: Int = 0,
    payload: (any Encodable & Sendable)? = nil, items: [OwnItem]
  ) {
    self.id = id
    self.title = title
    self.summary = summary
    self.priority = priority
    self.items = items
    self.payload = Self.encoded(payload)
  }

  private static func encoded(
    _ payload: (any Encodable & Sendable)?
  ) -> Result<[UInt8]?, MissionError> {
    guard let payload else { return .success(nil) }
    do { return .success(Array(try JSONEncoder().encode(payload))) } catch {
      return .failure(MissionError(.database, "the payload cannot be stored: \(error)"))
    }
  }
}

/// One item of a composed mission: a file of a server, or the result of a request.
public struct OwnItem: Sendable, Equatable {
  /// The path in the mission's folder, under the rule of ``MissionPath``.
  public var path: String
  public var kind: MissionItemKind
  /// RFC 6838, such as `video/mp4`.
  public var mediaType: String
  /// The request with the item as the answer.
  public var request: ContentRequest
  /// True if the answer must be JSON.
  public var isJSON: Bool
  /// The size in bytes, if it is known.
  public var size: Int64?
  /// The SHA-256, if it is known.
  public var hash: ContentHash?
  /// The largest accepted size, in bytes.
  public var sizeMax: Int64
  /// Paths of items that come first.
  public var after: [String]

  /// Creates an item: a file of any server.
  public static func file(
    _ path: String, from url: String, kind: MissionItemKind = .file,
    mediaType: String = "application/octet-stream", headers: [String: String] = [:],
    size: Int64? = nil, hash: ContentHash? = nil,
    sizeMax: Int64 = MissionLimits.standard.itemBytes, after: [String] = []
  ) -> OwnItem {
    file(
      path, of: ContentRequest(url, headers: headers), kind: kind, mediaType: mediaType, size: size,
      hash: hash, sizeMax: sizeMax, after: after)
  }

  /// Creates an item from the answer to a request, such as a document made by a service. The device
  /// may send the request more than once.
  public static func file(
    _ path: String, of request: ContentRequest, kind: MissionItemKind = .file,
    mediaType: String = "application/octet-stream", size: Int64? = nil, hash: ContentHash? = nil,
    sizeMax: Int64 = MissionLimits.standard.itemBytes, after: [String] = []
  ) -> OwnItem {
    OwnItem(
      path: path, kind: kind, mediaType: mediaType, request: request, isJSON: false, size: size,
      hash: hash, sizeMax: sizeMax, after: after)
  }

  /// Creates an item from the JSON result of a request. The device may send the request more than
  /// once.
  ///
  /// - Parameter sizeMax: the largest accepted result, in bytes.
  public static func result(
    _ path: String, of request: ContentRequest, sizeMax: Int64 = 16 << 20, after: [String] = []
  ) -> OwnItem {
    OwnItem(
      path: path, kind: .json, mediaType: "application/json", request: request, isJSON: true,
      size: nil, hash: nil, sizeMax: sizeMax, after: after)
  }
}

/// The stored form of an item.
extension OwnItem: Codable {
  private enum Key: String, CodingKey {
    case path, kind, mediaType, request, isJSON, size, sha256, sizeMax, after
  }

  public init(from decoder: any Decoder) throws {
    let box = try decoder.container(keyedBy: Key.self)
    let hash = try box.decodeIfPresent(String.self, forKey: .sha256)
    self.init(
      path: try box.decode(String.self, forKey: .path),
      kind: MissionItemKind(rawValue: try box.decode(String.self, forKey: .kind)) ?? .file,
      mediaType: try box.decode(String.self, forKey: .mediaType),
      request: try box.decode(ContentRequest.self, forKey: .request),
      isJSON: try box.decode(Bool.self, forKey: .isJSON),
      size: try box.decodeIfPresent(Int64.self, forKey: .size),
      hash: hash.flatMap { ContentHash($0) },
      sizeMax: try box.decode(Int64.self, forKey: .sizeMax),
      after: try box.decode([String].self, forKey: .after))
  }

  public func encode(to encoder: any Encoder) throws {
    var box = encoder.container(keyedBy: Key.self)
    try box.encode(path, forKey: .path)
    try box.encode(kind.rawValue, forKey: .kind)
    try box.encode(mediaType, forKey: .mediaType)
    try box.encode(request, forKey: .request)
    try box.encode(isJSON, forKey: .isJSON)
    try box.encodeIfPresent(size, forKey: .size)
    try box.encodeIfPresent(hash?.description, forKey: .sha256)
    try box.encode(sizeMax, forKey: .sizeMax)
    try box.encode(after, forKey: .after)
  }
}
