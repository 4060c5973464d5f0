import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryPatches

/// Patches for tests, and their signing keys.
enum PatchFixture {
  static let key = key(7)
  static let otherKey = key(8)
  static let now: Int64 = 1_800_000_000_000
  static let app = "org.example.shop"
  static let version = "2.3.0"

  static func document(
    _ script: String = "function patch(input) { return input }", behaviour: String = "double",
    sequence: Int64 = 5, services: [String] = []
  ) -> PatchDocument {
    PatchDocument(
      app: app, appVersions: ["2.2.9", version], behaviour: behaviour, sequence: sequence,
      expires: now + 1_000, services: services, script: script)
  }

  static func signed(
    _ document: PatchDocument, by key: Ed25519.SecretKey = key,
    type: String = PatchDocument.signatureType
  ) -> [UInt8] {
    Array(SignedDocument.sign(document.encoded(), type: type, with: key).utf8)
  }

  static func publicKey(_ key: Ed25519.SecretKey = key) throws -> PatchKey {
    try #require(PatchKey(key.publicKey.bytes))
  }

  private static func key(_ byte: UInt8) -> Ed25519.SecretKey {
    guard let key = try? Ed25519.SecretKey([UInt8](repeating: byte, count: 32)) else {
      preconditionFailure("32 bytes are a key")
    }
    return key
  }
}

/// A runner that returns prepared results, and remembers the inputs.
final class PreparedRunner: PatchRunning {
  typealias Answer = Result<[UInt8], PatchFailure>
  private struct State {
    var answers: [Answer] = []
    var requests: [PatchRequest] = []
  }

  private let state = Mutex(State())

  func prepare(_ answers: Answer...) { state.withLock { $0.answers += answers } }

  var requests: [PatchRequest] { state.withLock(\.requests) }

  func run(_ request: PatchRequest, services: @escaping ServiceCaller) async -> Answer {
    state.withLock { state in
      state.requests.append(request)
      return state.answers.isEmpty ? .failure(.timeUsedUp) : state.answers.removeFirst()
    }
  }
}

/// A wall clock set by a test.
final class SetClock: Sendable {
  private let time = Mutex(PatchFixture.now)
  func set(_ new: Int64) { time.withLock { $0 = new } }
  var now: Int64 { time.withLock { $0 } }
}

/// The program built by `make patches`.
enum BuiltHost {
  static let path = Project.file(".build/ferry-patch").path
  static var isBuilt: Bool { access(path, X_OK) == 0 }
  static let hint: Comment = "`make patches` builds ferry-patch, which this test runs"
}

extension Result where Success == [UInt8] {
  /// The result as a text.
  var text: Result<String, Failure> { map { String(decoding: $0, as: UTF8.self) } }
}
