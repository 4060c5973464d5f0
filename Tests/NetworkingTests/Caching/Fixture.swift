import FerryNetworking
import Foundation
import Synchronization

@testable import FerryCaching

/// The moment at which responses arrive: Sun, 06 Nov 1994 08:49:37 GMT, in milliseconds since 1970.
let arrival: Int64 = 784_111_777_000

/// Returns a date field's value, so many seconds after the arrival.
func date(_ seconds: Int = 0) -> String {
  var time = time_t(arrival / 1000 + Int64(seconds))
  var parts = tm()
  gmtime_r(&time, &parts)
  let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
  func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
  return "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
    + "\(parts.tm_year + 1900) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
}

/// A clock moved only by a test.
final class HandClock: Sendable {
  private let state: Mutex<Int64>

  init(_ now: Int64 = arrival) { state = Mutex(now) }

  var now: Int64 { state.withLock { $0 } }

  func advance(_ seconds: Int64) { state.withLock { $0 += seconds * 1000 } }
}

/// A new folder, removed in the end.
final class Folder: Sendable {
  let path = NSTemporaryDirectory() + "/CachingTests.\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// All files below, by their paths in the folder.
  var files: [String] {
    (FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? [])
      .filter { name in
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isFolder)
        return !isFolder.boolValue
      }.sorted()
  }

  /// The files of large bodies.
  var bodies: [String] { files.filter { $0.hasPrefix("bodies/") } }

  func write(_ bytes: [UInt8], to name: String) {
    let file = URL(fileURLWithPath: path + "/" + name)
    try? FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try? Data(bytes).write(to: file, options: .atomic)
  }
}

/// Responds by a function, and records requests.
final class AnsweringTransport: Transport {
  typealias Answer = @Sendable (TransportRequest) async throws(TransportError) -> TransportResponse

  private let asked = Mutex<[TransportRequest]>([])
  private let answer: Answer

  init(_ answer: @escaping Answer) { self.answer = answer }

  var requests: [TransportRequest] { asked.withLock { $0 } }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    asked.withLock { $0.append(request) }
    return try await answer(request)
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.other, "no streams here")
  }
}

/// Content of missions, by canonical address.
struct Brought: PinnedContent {
  let files: [String: PinnedFile]

  func content(for url: String) async -> PinnedFile? { files[url] }
}

extension CachedHead {
  /// Creates a head with the arrival as the time of receipt.
  init(
    _ headers: TransportHeaders, status: Int = 200, id: Int64 = 1, received: Int64 = arrival,
    for request: TransportHeaders = [:]
  ) {
    self.init(
      id: id, status: status, headers: headers, requested: received, received: received,
      variant: Variant(of: headers, for: request) ?? .any)
  }
}

extension CacheKey {
  /// Creates the key of a plain address.
  init(_ path: String, partition: CachePartition = .credentials) {
    self.init(CacheableRequest(endpoint: "http://host/" + path), partition: partition)
  }
}

/// Takes heads out of a closure.
final class HeadBox: Sendable {
  private let state = Mutex<[CachedHead]>([])

  var heads: [CachedHead] { state.withLock { $0 } }

  func set(_ heads: [CachedHead]) { state.withLock { $0 = heads } }
}
